// SPDX-License-Identifier: Apache-2.0
#include "cli/job/job_roll.h"

#include <catch2/catch.hpp>
#include <string>

namespace hvd::cli {
namespace {

v1::RankExited Exit(int code) {
  v1::RankExited exit;
  exit.set_exit_code(code);
  return exit;
}

RankFact RankOn(int host) {
  RankFact fact;
  fact.host = host;
  return fact;
}

std::string Drops(Outbox* outbox) {
  std::string words;
  for (const Action& action : outbox->Take()) {
    if (action.kind == Action::kDrop) words += std::to_string(action.host);
  }
  return words;
}

}  // namespace

TEST_CASE("a job's roll counts the ranks that have not ended, however they do", "[job]") {
  JobFacts facts = FactsOf(Topology({{"a", 2}, {"b", 1}}));
  JobRoll roll(&facts);
  CHECK(roll.running() == 3);
  roll.Started(0, 17);
  CHECK(facts.ranks[0].pid == 17);
  roll.Exited(0, Exit(1), 1);
  CHECK(roll.running() == 2);
  roll.LoseRanks(0);  // the one that has ended stays so
  CHECK(roll.running() == 1);
  CHECK(facts.ranks[0].phase == RankFact::kExited);
  CHECK(facts.ranks[1].phase == RankFact::kLost);
  roll.AddRank(RankOn(1));
  CHECK(roll.running() == 2);
}

TEST_CASE("all hosts have launched when the last has, or is gone; a new one begins anew", "[job]") {
  JobFacts facts = FactsOf(Topology({{"a", 1}, {"b", 1}, {"c", 1}}));
  JobRoll roll(&facts);
  roll.Launched(0, v1::CONTAINMENT_AUTO);
  CHECK_FALSE(roll.launched_all());
  facts.hosts[1].phase = HostFact::kGone;
  roll.Launched(2, v1::CONTAINMENT_AUTO);
  CHECK(roll.launched_all());
  roll.AddHost({});
  CHECK_FALSE(roll.launched_all());
}

TEST_CASE("a stopped host keeps its link until its ranks' output has ended", "[job]") {
  JobFacts facts = FactsOf(Topology({{"a", 1}, {"b", 1}}));
  JobRoll roll(&facts);
  Outbox outbox;
  for (const int rank : {0, 1}) roll.Started(rank, 1);
  roll.Drain(0, 10);
  CHECK(roll.DropDrained(&outbox, 10) == 10 + kOutputPatienceS);
  roll.StreamMoved(0, true, 11);
  CHECK(roll.DropDrained(&outbox, 11) == 11 + kOutputPatienceS);  // each word gives it more time
  CHECK(Drops(&outbox).empty());
  roll.StreamMoved(0, true, 12);
  roll.DropDrained(&outbox, 12);
  CHECK(Drops(&outbox) == "0");
}

TEST_CASE("a stopped host's output is not waited for without end, unless nobody takes it",
          "[job]") {
  JobFacts facts = FactsOf(Topology({{"a", 1}}));
  JobRoll roll(&facts);
  Outbox outbox;
  roll.Started(0, 1);
  roll.Drain(0, 10);
  roll.OutputPaused(true, 10);
  roll.DropDrained(&outbox, 10 + 2 * kOutputPatienceS);
  CHECK(Drops(&outbox).empty());
  roll.OutputPaused(false, 100);
  roll.DropDrained(&outbox, 100 + kOutputPatienceS);
  CHECK(Drops(&outbox) == "0");
}

}  // namespace hvd::cli
