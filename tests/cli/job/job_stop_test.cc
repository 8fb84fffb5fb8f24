// SPDX-License-Identifier: Apache-2.0
#include "cli/job/job_stop.h"

#include <signal.h>

#include <catch2/catch.hpp>
#include <string>

namespace hvd::cli {
namespace {

struct StopTable {
  explicit StopTable(const JobPolicy& policy = {})
      : book{policy, 0, FactsOf(Topology({{"a", 1}, {"b", 1}})), {}}, stop(&book) {}

  // "abort stop close kill say"
  std::string Wants() {
    std::string words;
    for (const Action& action : book.outbox.Take()) {
      if (!words.empty()) words += " ";
      if (action.kind == Action::kSay) words += "say";
      if (action.command.has_epoch_abort()) words += "abort";
      if (!action.command.has_stop()) continue;
      words += action.command.stop().kill()        ? "kill"
               : action.command.stop().may_agree() ? "close"
                                                   : "stop";
    }
    return words;
  }

  JobBook book;
  JobStop stop;
};

}  // namespace

TEST_CASE("a fault ends the ranks' collectives; a person's word leaves them until one is gone",
          "[job]") {
  StopTable fault;
  fault.stop.Stop("rank 0 died", 1);
  CHECK(fault.Wants() == "abort stop");

  StopTable word;
  word.stop.Signalled(SIGTERM, 2, 1);
  CHECK(word.Wants() == "close");
  CHECK(word.book.facts.ending == Ending::kTerminated);
  word.stop.EndAgreement("rank 0 died");
  CHECK(word.Wants() == "stop");
  word.stop.EndAgreement("rank 1 died");
  CHECK(word.Wants().empty());
}

TEST_CASE("what comes behind the first cause changes no ending", "[job]") {
  StopTable table;
  table.stop.Stop("rank 0 died", 1);
  table.stop.End(Ending::kTimedOut, "late", 5);
  CHECK(table.book.facts.ending == Ending::kNone);
  CHECK(table.stop.since() == 1);
}

TEST_CASE("a victim's stop waits for the culprit's end, or a while", "[job]") {
  StopTable table;
  CHECK_FALSE(table.stop.CulpritEnded(1));
  table.stop.AwaitCulprit("rank 1 failed", 1, 2);
  CHECK(table.stop.deadline() == 3);
  table.stop.Tick(2.5);
  CHECK_FALSE(table.stop.begun());
  SECTION("it ends") { CHECK(table.stop.CulpritEnded(2.6)); }
  SECTION("it does not") { table.stop.Tick(3); }
  CHECK(table.stop.begun());
}

TEST_CASE("a fault is late once a stop explains it, but not that of the host it began with",
          "[job]") {
  StopTable table;
  CHECK_FALSE(table.stop.Explains(0));
  table.stop.NoteBroken(0);
  table.stop.Stop("rank 0 broke its link", 1);
  CHECK_FALSE(table.stop.Explains(0));
  CHECK(table.stop.Explains(1));
}

TEST_CASE("a host's silence is hvdrun's own pause, shortly after one", "[job]") {
  JobPolicy policy;
  policy.lease_s = 10;
  StopTable table(policy);
  CHECK_FALSE(table.stop.ExplainsSilence(1));
  table.stop.Paused(6, true, 20);
  CHECK_FALSE(table.stop.begun());
  CHECK_FALSE(table.stop.ExplainsSilence(30));
  CHECK(table.stop.ExplainsSilence(29));
  CHECK(table.book.facts.ending == Ending::kPaused);
}

TEST_CASE("the second signal kills, and a person is told once", "[job]") {
  StopTable table;
  table.stop.Signalled(SIGINT, 2, 1);
  CHECK(table.Wants() == "say close");
  table.stop.Signalled(SIGINT, 2, 2);
  CHECK(table.Wants() == "say kill");
  table.stop.Signalled(SIGINT, 2, 3);
  CHECK(table.Wants() == "kill");
}

}  // namespace hvd::cli
