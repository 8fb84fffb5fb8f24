#include "runtime/engine/negotiator.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "runtime/engine/agreement_words.h"

namespace hvd {
namespace {

OutboxEntry Report(const std::string& name, uint32_t number, int rank, int64_t n, int ranks) {
  OutboxEntry entry;
  entry.name = name;
  entry.number = number;
  entry.first.rank = rank;
  entry.first.signature.kind = RequestKind::kAllreduce;
  entry.first.signature.dtype = HVD_FLOAT32;
  entry.first.signature.op = HVD_SUM;
  entry.first.signature.ndim = 1;
  entry.first.signature.shape[0] = n;
  entry.rows.assign(ranks, n);
  return entry;
}

const Topology kWorld({{"a", 2}, {"b", 1}, {"c", 3}});

TEST_CASE("the last host's report decides, in each host's own number") {
  Negotiator root(kWorld);
  CHECK(root.OnReport(2, Report("x", 9, 3, 4, 3)).empty());
  CHECK(root.OnReport(0, Report("x", 7, 0, 4, 2)).empty());
  CHECK(root.open() == 1);
  const auto decisions = root.OnReport(1, Report("x", 8, 2, 4, 1));
  REQUIRE(decisions.size() == 3);
  CHECK(decisions[0].entry.number == 7);
  CHECK(decisions[1].entry.number == 8);
  CHECK(decisions[2].entry.number == 9);
  CHECK(decisions[0].entry.error.empty());
  CHECK(root.open() == 0);
}

TEST_CASE("a mismatch between hosts and one within a host give every host the same text") {
  Negotiator root(kWorld);
  OutboxEntry last = Report("x", 8, 2, 4, 1);
  SECTION("between hosts") { last = Report("x", 8, 2, 5, 1); }
  SECTION("within a host") { last.other = Asker{2, Report("x", 1, 2, 6, 1).first.signature}; }
  root.OnReport(0, Report("x", 7, 0, 4, 2));
  root.OnReport(2, Report("x", 9, 3, 4, 3));
  const auto decisions = root.OnReport(1, last);
  REQUIRE(decisions.size() == 3);
  CHECK(decisions[0].entry.error.find("rank 0 asked for") != std::string::npos);
  CHECK(decisions[0].entry.error.find("rank 2 for") != std::string::npos);
  for (const auto& decision : decisions) CHECK(decision.entry.error == decisions[0].entry.error);
}

TEST_CASE("rows are put together by global rank") {
  Negotiator root(kWorld);
  std::vector<HostDecision> decisions;
  for (const int host : {1, 2, 0}) {
    OutboxEntry report = Report("g", 1, kWorld.first_rank(host), 0, kWorld.hosts()[host].ranks);
    report.first.signature.kind = RequestKind::kAllgather;
    for (size_t i = 0; i < report.rows.size(); ++i) report.rows[i] = 10 * host + i;
    decisions = root.OnReport(host, report);
  }
  REQUIRE(decisions.size() == 3);
  CHECK(decisions[2].entry.rows == std::vector<int64_t>{0, 1, 10, 20, 21, 22});
}

TEST_CASE("a report and a decision survive the wire, and garbage does not") {
  OutboxEntry report = Report("x", 7, 3, 4, 2);
  report.other = Asker{4, Report("x", 7, 4, 5, 1).first.signature};
  const auto message = DecodeAgreement(EncodeOutbox(report));
  REQUIRE(message.ok());
  const OutboxEntry& back = message->outbox;
  CHECK(back.name == "x");
  CHECK(back.number == 7);
  CHECK(Describe(back.first.signature) == Describe(report.first.signature));
  CHECK(back.other->rank == 4);
  CHECK(back.rows == report.rows);
  LogEntry entry;
  entry.number = 3;
  entry.error = "wrong";
  entry.rows = {1, 2};
  entry.contributors = 5;
  entry.signature = report.first.signature;
  entry.signature.prescale = 0.3;
  entry.signature.group_count = 7;
  entry.signature.group_hash = ~0ull;
  const auto decision = DecodeAgreement(EncodeDecision(entry));
  REQUIRE(decision.ok());
  CHECK(decision->decision.error == "wrong");
  CHECK(decision->decision.rows == entry.rows);
  CHECK(decision->decision.contributors == 5);
  CHECK(decision->decision.signature.prescale == 0.3);
  CHECK(decision->decision.signature.group_count == 7);
  CHECK(decision->decision.signature.group_hash == ~0ull);
  CHECK_FALSE(DecodeAgreement("\xff\xff\xff").ok());
  CHECK_FALSE(DecodeAgreement("").ok());
}

}  // namespace
}  // namespace hvd
