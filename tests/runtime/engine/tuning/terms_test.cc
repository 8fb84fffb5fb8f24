// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/tuning/terms.h"
#include "runtime/engine/library_term.h"

#include <catch2/catch.hpp>

#include "proto/settings/setting_text.h"
#include "runtime/engine/tuning/config.h"
#include "tests/runtime/engine/engine_world.h"

namespace hvd::rt {
namespace {

using Catch::Matchers::Contains;

const Topology kTwoHosts({{"a", 2}, {"b", 2}});

std::vector<Term> TermsOf(const std::vector<std::string>& environment) {
  const auto config = MakeConfig(environment);
  INFO(config.status().message());
  REQUIRE(config.ok());
  std::vector<Term> terms = config->terms;
  terms.insert(terms.begin(), LibraryTerm());
  return terms;
}

// Rank 3 has another environment than the others. Returns what every rank says of it.
std::string Compare(const std::vector<Term>& usual, const std::vector<Term>& odd) {
  std::vector<std::string> cards(3, WriteCard("address", usual));
  cards.push_back(WriteCard("address", odd));
  const auto mine = ReadCards(cards, kTwoHosts, usual);
  const auto theirs = ReadCards(cards, kTwoHosts, odd);
  CHECK(mine.status() == theirs.status());
  if (mine.ok()) CHECK(*mine == std::vector<std::string>(4, "address"));
  return std::string(mine.status().message());
}

// Another value than the default.
std::string OtherValue(const Setting& setting) {
  if (setting.kind == SettingKind::kFlag) return setting.fallback[0] == '1' ? "0" : "1";
  if (setting.kind == SettingKind::kText) return "x";
  if (setting.kind == SettingKind::kChoice) return std::string(setting.choices[1]);
  return ShowNumber(setting.kind, setting.least + 1);
}

TEST_CASE("every setting that ranks must have alike is named when they have not, and no other") {
  for (const Setting& setting : Settings()) {
    const std::string value = OtherValue(setting);
    const std::string said =
        Compare(TermsOf({}), TermsOf({absl::StrCat(setting.name, "=", value)}));
    INFO(setting.name << " " << value << ": " << said);
    if (ScopeOf(setting.id) != SettingScope::kJob) {
      CHECK(said == "");
      continue;
    }
    CHECK_THAT(said, Contains(absl::StrCat(setting.name, " is ")));
    CHECK_THAT(said, Contains("on rank 0 (host a) and "));
    CHECK_THAT(said, Contains(value + " on rank 3 (host b): set it alike"));
    CHECK_THAT(said, Contains(absl::StrCat("hvdrun -x ", setting.name)));
    CHECK(Compare(TermsOf({absl::StrCat(setting.name, "=", value)}),
                  TermsOf({absl::StrCat(setting.name, "=", value)})) == "");
  }
}

TEST_CASE("what counts is compared: a default that is set is the same as one that is not") {
  CHECK(Compare(TermsOf({}), TermsOf({"HVD_PIECE_BYTES=65536", "HVD_ONE_SHOT_BYTES=16K",
                                      "HVD_FUSION_THRESHOLD=64M", "HVD_AUTOTUNE=off"})) == "");
  CHECK(Compare(TermsOf({"HVD_PIECE_BYTES=1M"}), TermsOf({"HVD_PIECE_BYTES=1024K"})) == "");
  CHECK(Compare(TermsOf({}), TermsOf({"HVD_PIECE_BYTES=4096"})) ==
        "HVD_PIECE_BYTES is 64K on rank 0 (host a) and 4K on rank 3 (host b): set it alike, for "
        "instance with hvdrun -x HVD_PIECE_BYTES");
}

TEST_CASE("several differences are told together, and not without end") {
  const std::string said = Compare(
      TermsOf({}), TermsOf({"HVD_PIECE_BYTES=4096", "HVD_RAILS_BYTES=1", "HVD_RING_BYTES=1",
                            "HVD_AUTOTUNE=1", "HVD_DETERMINISTIC=1", "HVD_SEGMENT_BYTES=5000"}));
  CHECK_THAT(said, Contains("HVD_PIECE_BYTES") && Contains("; HVD_RAILS_BYTES"));
  CHECK_THAT(said, Contains("; and 2 settings more"));
}

TEST_CASE("another library comes first, for its terms mean something else") {
  std::vector<Term> other = TermsOf({"HVD_PIECE_BYTES=4096"});
  other[0].value = "9.9.9 (layout 0)";
  CHECK_THAT(Compare(TermsOf({}), other),
             Contains("libhvd is " + LibraryTerm().value) && Contains("9.9.9") &&
                 Contains("rank 3 (host b): use the same on all hosts") &&
                 !Contains("HVD_PIECE_BYTES"));
  std::vector<std::string> cards(3, WriteCard("", TermsOf({})));
  cards.push_back("\xff\xff");  // of a library that knew no cards
  CHECK_THAT(std::string(ReadCards(cards, kTwoHosts, TermsOf({})).status().message()),
             Contains("rank 3 (host b) has another libhvd"));
  cards.back() = WriteCard("", {});
  CHECK_THAT(std::string(ReadCards(cards, kTwoHosts, TermsOf({})).status().message()),
             Contains("not known on rank 3"));
}

TEST_CASE("process sets are the same in any order of their ranks, and long ones told apart") {
  CHECK(ProcessSetsTerm({}).value == "none");
  CHECK(ProcessSetsTerm({{1, 0}, {2}}).value == "{0,1} {2}");
  std::vector<int32_t> many(1000), more(1000);
  for (int32_t i = 0; i < 1000; ++i) many[i] = more[i] = i;
  more[999] = 1001;
  CHECK(ProcessSetsTerm({many}).value.size() < 120);
  CHECK(ProcessSetsTerm({many}).value != ProcessSetsTerm({more}).value);
}

TEST_CASE("a job whose ranks differ does not begin, and all ranks hear the same") {
  for (const std::vector<HostShape>& hosts :
       {std::vector<HostShape>{{"a", 3}}, {{"a", 2}, {"b", 1}}}) {
    FakeDaemon daemon(hosts);
    const Topology topology(hosts);
    LoopbackWorld network(topology.size());
    std::vector<absl::Status> heard(3);
    std::vector<std::thread> ranks;
    for (int r = 0; r < 3; ++r) {
      ranks.emplace_back([&, r] {
        auto session = Session::Open(daemon.link(r));
        if (!session.ok()) return;
        JoinOptions options;
        options.host_cores = 2;
        options.make_transport = [&](const TransportPlace& place) {
          return network.TransportFor(place.rank);
        };
        options.terms = {{"HVD_X", r == 2 ? "5" : "4", "set it alike"}};
        heard[r] = EpochWorld::Join(session->get(), options).status();
      });
    }
    for (std::thread& rank : ranks) rank.join();
    for (const absl::Status& status : heard) {
      CHECK(absl::IsFailedPrecondition(status));
      CHECK(status == heard[0]);
    }
    CHECK_THAT(std::string(heard[0].message()), Contains("HVD_X is 4 on rank 0 (host a) and 5"));
  }
}

}  // namespace
}  // namespace hvd::rt
