// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/agreement/agreement_message.h"

#include <catch2/catch.hpp>

namespace hvd::rt {
namespace {

Signature Sum(int64_t n) {
  Signature s;
  s.kind = RequestKind::kAllreduce;
  s.dtype = HVD_FLOAT32;
  s.op = HVD_SUM;
  s.ndim = 1;
  s.shape[0] = n;
  return s;
}

TEST_CASE("what goes up survives the wire") {
  AgreementMessage message;
  message.same_ids = {1, 300, 7};
  UpReport report;
  report.name = "x";
  report.report.first = {3, Sum(4)};
  report.report.first.signature.prescale = 0.3;
  report.report.first.signature.group_count = 7;
  report.report.first.signature.group_hash = ~0ull;
  report.report.first.signature.contents = ~1ull;
  report.report.first.signature.group_types = 17;
  report.report.other = Asker{4, Sum(5)};
  report.report.contributors = 5;
  report.report.joined_rank = 0;
  report.report.last_joined = 9;
  report.report.rows = {0, 1, 2};
  message.reports.push_back(report);
  message.lefts.push_back({2, {"a", "b"}});
  message.has_retired = message.bye = true;
  const auto read = DecodeAgreement(EncodeAgreement(message));
  REQUIRE(read.ok());
  CHECK(read->same_ids == message.same_ids);
  REQUIRE(read->reports.size() == 1);
  const Report& back = read->reports[0].report;
  CHECK(read->reports[0].name == "x");
  CHECK(back.first.rank == 3);
  CHECK(back.first.signature.prescale == 0.3);
  CHECK(back.first.signature.group_count == 7);
  CHECK(back.first.signature.group_hash == ~0ull);
  CHECK(back.first.signature.contents == ~1ull);
  CHECK(back.first.signature.group_types == 17);
  CHECK(Describe(back.other->signature) == Describe(Sum(5)));
  CHECK(back.other->rank == 4);
  CHECK(back.contributors == 5);
  CHECK(back.joined_rank == 0);
  CHECK(back.last_joined == 9);
  CHECK(back.rows == report.report.rows);
  CHECK(read->lefts[0].names == message.lefts[0].names);
  CHECK(read->has_retired);
  CHECK(read->bye);
}

TEST_CASE("decisions keep their order, and known tensors cost their id") {
  AgreementMessage message;
  for (uint32_t id = 1; id <= 161; ++id) message.decisions.emplace_back().id = id;
  CHECK(EncodeAgreement(message).size() < 300);
  Decision& full = message.decisions[80];
  full.error = "wrong";
  full.rows = {4, 5};
  full.contributors = 3;
  full.result = 2;
  full.name = "n";
  full.has_signature = true;
  full.signature = Sum(12);
  message.retired = {5, 6};
  const auto read = DecodeAgreement(EncodeAgreement(message));
  REQUIRE(read.ok());
  REQUIRE(read->decisions.size() == 161);
  for (uint32_t id = 1; id <= 161; ++id) CHECK(read->decisions[id - 1].id == id);
  const Decision& back = read->decisions[80];
  CHECK(back.error == "wrong");
  CHECK(back.rows == full.rows);
  CHECK(back.contributors == 3);
  CHECK(back.result == 2);
  CHECK(back.name == "n");
  CHECK(back.signature.shape[0] == 12);
  CHECK(read->retired == message.retired);
}

TEST_CASE("garbage is refused") {
  CHECK_FALSE(DecodeAgreement("\xff\xff\xff").ok());
  CHECK_FALSE(DecodeAgreement("").ok());
  AgreementMessage message;
  UpReport report;
  report.name = "x";
  report.report.first.signature.kind = static_cast<RequestKind>(77);
  message.reports.push_back(report);
  CHECK_FALSE(DecodeAgreement(EncodeAgreement(message)).ok());
  AgreementMessage nameless;
  nameless.decisions.emplace_back().error = "e";
  CHECK_FALSE(DecodeAgreement(EncodeAgreement(nameless)).ok());
}

}  // namespace
}  // namespace hvd::rt
