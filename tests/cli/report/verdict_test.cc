// SPDX-License-Identifier: Apache-2.0
#include "cli/report/verdict.h"

#include <signal.h>

#include <catch2/catch.hpp>

#include "base/printable.h"
#include "cli/report/verdict_text.h"

namespace hvd::cli {
namespace {

JobFacts Facts() {
  JobFacts facts = FactsOf(Topology({{"alpha", 3}, {"beta", 3}}));
  for (int rank = 0; rank < 6; ++rank) {
    facts.ranks[rank].phase = RankFact::kExited;
    facts.ranks[rank].exit.set_member(rank + 1);
    facts.ranks[rank].exit.set_left(true);
  }
  return facts;
}

void Exit(JobFacts* facts, int rank, double at_s, int code, int signal, bool after_abort) {
  RankFact& fact = facts->ranks[rank];
  fact.ended_s = at_s;
  fact.during_stop = after_abort;
  fact.exit.set_exit_code(code);
  fact.exit.set_signal(signal);
  fact.exit.set_after_abort(after_abort);
}

bool Has(const std::string& text, const std::string& part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  return true;
}

TEST_CASE("all clean is a success without words") {
  const JobFacts facts = Facts();
  CHECK(Judge(facts).exit_code == 0);
  CHECK(RenderVerdict(facts, Judge(facts)).empty());
}

TEST_CASE("an exit before the abort beats every later one, whatever its class") {
  JobFacts facts = Facts();
  Exit(&facts, 1, 1.0, 0, SIGSEGV, true);
  Exit(&facts, 4, 2.0, 3, 0, false);
  CHECK(Judge(facts).index == 4);
  CHECK(Judge(facts).exit_code == 3);
}

TEST_CASE("then the class decides: a death beats an error code, and time only then") {
  JobFacts facts = Facts();
  Exit(&facts, 0, 1.0, 1, 0, false);
  Exit(&facts, 5, 1.1, 0, SIGKILL, false);
  Exit(&facts, 2, 1.2, 0, SIGSEGV, false);
  CHECK(Judge(facts).index == 5);
  CHECK(Judge(facts).exit_code == 137);
}

TEST_CASE("a rank whose doing the abort is comes before the others, unless we ended it") {
  JobFacts facts = Facts();
  Exit(&facts, 0, 1.0, 0, SIGABRT, true);
  Exit(&facts, 4, 1.5, 3, 0, true);
  CHECK(Judge(facts).index == 0);
  facts.ranks[4].cause = true;
  CHECK(Judge(facts).index == 4);
  CHECK(Judge(facts).exit_code == 3);
  Exit(&facts, 4, 1.5, 0, SIGTERM, true);
  CHECK(Judge(facts).index == 0);
  Exit(&facts, 2, 2.0, 0, SIGKILL, false);
  CHECK(Judge(facts).index == 2);
}

TEST_CASE("ranks that we ended are the last to be blamed") {
  JobFacts facts = Facts();
  Exit(&facts, 0, 1.0, 0, SIGTERM, true);
  Exit(&facts, 1, 1.5, 9, 0, true);
  CHECK(Judge(facts).index == 1);
  CHECK(Judge(facts).exit_code == 9);
}

TEST_CASE("a kill that was not ours is blamed although an epoch had been aborted before") {
  JobFacts facts = Facts();
  Exit(&facts, 0, 1.0, 0, SIGKILL, true);
  facts.ranks[0].during_stop = false;
  Exit(&facts, 1, 1.5, 1, 0, true);
  CHECK(Judge(facts).index == 0);
  CHECK(Judge(facts).exit_code == 137);
}

TEST_CASE("an early exit with code 0 is a fault only when another failed") {
  JobFacts facts = Facts();
  facts.ranks[2].early = true;
  CHECK(Judge(facts).kind == Verdict::kSuccess);
  Exit(&facts, 3, 2, 1, 0, true);
  CHECK(Judge(facts).index == 2);
  CHECK(Judge(facts).exit_code == 1);
}

TEST_CASE("an early exit is a fault where another was refused an epoch, whatever it made of that") {
  JobFacts facts = Facts();
  facts.ranks[2].early = true;
  facts.ranks[3].exit.set_refused(true);
  CHECK(Judge(facts).index == 2);
  CHECK(Judge(facts).exit_code == 1);
}

TEST_CASE("a worker's death behind a wrapper is the reason, unless the wrapper ended first") {
  JobFacts facts = Facts();
  RankFact& rank = facts.ranks[2];
  rank.pid = 1020;
  rank.broke = "rank 2 on alpha: its worker (pid 1023) was killed by signal 9 (Killed)";
  rank.broke_s = 0.5;
  rank.worker.set_pid(1023);
  rank.worker.set_known(true);
  rank.worker.set_signal(SIGKILL);
  rank.worker.set_wrapper("bash");
  const std::string words =
      "hvdrun: rank 2 on alpha: its worker (pid 1023) was killed by signal 9 (Killed); its wrapper "
      "bash (pid 1020) lived on, 0.5 s after the start\n";
  SECTION("by our TERM") { Exit(&facts, 2, 2, 0, SIGTERM, false); }
  SECTION("by its own answer to our TERM") { Exit(&facts, 2, 2, 1, 0, false); }
  SECTION("well") { Exit(&facts, 2, 2, 0, 0, false); }
  if (rank.exit.signal() != 0 || rank.exit.exit_code() != 0) rank.during_stop = true;
  CHECK(Judge(facts).index == 2);
  CHECK(Judge(facts).exit_code == 137);
  Has(RenderVerdict(facts, Judge(facts)), words);
  Exit(&facts, 2, 0.6, 3, 0, false);
  CHECK(Judge(facts).exit_code == 3);
  Has(RenderVerdict(facts, Judge(facts)), "rank 2 on alpha exited with code 3, 0.6 s");
  Has(RenderVerdict(facts, Judge(facts)), "its worker (pid 1023) was killed by signal 9");
}

TEST_CASE("output that is lost is a fault of its own, and a word beside any other") {
  JobFacts facts = Facts();
  facts.lost_output.push_back("5 bytes of output are lost");
  CHECK(Judge(facts).exit_code == 1);
  Has(RenderVerdict(facts, Judge(facts)), "hvdrun: 5 bytes of output are lost\n  next: ");
  Exit(&facts, 2, 2, 7, 0, false);
  CHECK(Judge(facts).exit_code == 7);
  Has(RenderVerdict(facts, Judge(facts)), "  also: 5 bytes of output are lost\n");
}

TEST_CASE("files that are not whole are a fault, too; many are folded") {
  JobFacts facts = Facts();
  for (const char* file : {"1", "2", "3", "4", "5", "6"}) {
    facts.lost_files.push_back(std::string("host alpha: writing /out/") + file);
  }
  CHECK(Judge(facts).exit_code == 1);
  const std::string text = RenderVerdict(facts, Judge(facts));
  Has(text, "hvdrun: host alpha: writing /out/1\n  also: host alpha: writing /out/2\n");
  Has(text,
      "  also: host alpha: writing /out/4\n  also: and 2 more files\n  next: make room there");
  CHECK(text.find("/out/5") == text.npos);
  Exit(&facts, 2, 2, 7, 0, false);
  CHECK(Judge(facts).exit_code == 7);
  Has(RenderVerdict(facts, Judge(facts)), "  also: host alpha: writing /out/1\n");
}

TEST_CASE("where ranks lack that never were there, the list is to be looked at") {
  JobFacts facts = Facts();
  facts.ending = Ending::kTooFew;
  facts.ending_text = "0 of at least 2 ranks are there";
  Has(RenderVerdict(facts, Judge(facts)), "  next: let the list of hosts have more slots");
  facts.hosts[1].fault = HostFact::kLost;
  Has(RenderVerdict(facts, Judge(facts)), "  next: look at what became of the missing ranks");
}

TEST_CASE("a broken link is explained by the exit behind it where that says more") {
  JobFacts facts = Facts();
  facts.ranks[2].broke = "its process ended";
  CHECK(Judge(facts).exit_code == 1);
  Exit(&facts, 2, 2, 0, SIGTERM, true);
  CHECK(Judge(facts).exit_code == 1);
  Exit(&facts, 2, 2, 0, SIGSEGV, false);
  CHECK(Judge(facts).exit_code == 139);
}

TEST_CASE("a lost host counts as a death; one lost during the stop is a consequence") {
  JobFacts facts = Facts();
  facts.hosts[1].fault = HostFact::kLost;
  facts.hosts[1].fault_code = 125;
  facts.hosts[1].fault_s = 1;
  Exit(&facts, 0, 1.5, 1, 0, false);
  CHECK(Judge(facts).kind == Verdict::kHost);
  facts.hosts[1].fault_late = true;
  CHECK(Judge(facts).index == 0);
}

TEST_CASE(
    "a lost host explains the links of its ranks, even those that broke before it was known") {
  JobFacts facts = Facts();
  facts.hosts[1].fault = HostFact::kLost;
  facts.hosts[1].fault_code = 125;
  facts.hosts[1].fault_s = 1;
  facts.ranks[2].broke = "its process ended";
  facts.ranks[2].broke_s = 0.9;
  Exit(&facts, 2, 1.1, 0, SIGKILL, true);
  facts.ranks[2].during_stop = true;
  CHECK(Judge(facts).kind == Verdict::kHost);
  CHECK(Judge(facts).exit_code == 125);
}

TEST_CASE("an ending asked for has its own code") {
  JobFacts facts = Facts();
  Exit(&facts, 0, 1, 0, SIGTERM, true);
  const std::pair<Ending, int> kCodes[] = {
      {Ending::kInterrupted, 130}, {Ending::kTerminated, 143},  {Ending::kHungUp, 129},
      {Ending::kTimedOut, 124},    {Ending::kNotJoined, 125},   {Ending::kConsoleLost, 125},
      {Ending::kOutputGone, 141},  {Ending::kSpawnerLost, 125}, {Ending::kSignal, 138},
  };
  facts.ending_signal = SIGUSR1;
  for (const auto& [ending, code] : kCodes) {
    facts.ending = ending;
    CHECK(Judge(facts).exit_code == code);
  }
  facts.ending = Ending::kOutputGone;
  CHECK(RenderVerdict(facts, Judge(facts)).empty());
}

TEST_CASE("the screen: who, how, what it was doing, its last lines, who was stopped for it") {
  JobFacts facts = Facts();
  Exit(&facts, 3, 12.34, 0, SIGKILL, false);
  facts.ranks[3].pid = 4711;
  facts.ranks[3].exit.set_out_of_memory(true);
  facts.ranks[3].exit.set_activity("allreduce 'grad.3' float32 [64,10]");
  facts.ranks[3].exit.add_last_lines("loading");
  facts.ranks[3].exit.add_last_lines("\033[31mno memory");
  for (const int rank : {0, 1, 2, 4}) Exit(&facts, rank, 12.4, 0, SIGTERM, true);
  facts.ranks[0].exit.set_activity("waits in allreduce 'grad.4'");
  Exit(&facts, 5, 12.5, 1, 0, true);
  const std::string text = RenderVerdict(facts, Judge(facts));
  Has(text, "hvdrun: rank 3 on beta was killed by signal 9 (Killed): out of memory");
  Has(text, "12.3 s after the start");
  Has(text, "  it was pid 4711 there, allreduce 'grad.3' float32 [64,10]\n");
  Has(text, "    | loading\n    | \\x1b[31mno memory\n");
  Has(text, "meanwhile rank 0: waits in allreduce 'grad.4'");
  Has(text, "ranks 0-2,4 were stopped because rank 3 failed");
  Has(text, "rank 5 exited with code 1 afterwards");
  CHECK(text.substr(text.size() - 16) == "  exit code 137\n");
}

TEST_CASE("what ranks say of themselves cannot forge a line") {
  JobFacts facts = Facts();
  Exit(&facts, 3, 1, 7, 0, false);
  facts.ranks[3].exit.set_activity("allreduce 'x\nhvdrun: forged'");
  facts.ranks[3].exit.add_last_lines(
      "\xc2\x9b"
      "31m\x9b"
      "31m\u202e");
  Exit(&facts, 4, 2, 126, 0, true);
  facts.ranks[4].exit.set_exec_error("cannot run 'x\nforged'");
  facts.ranks[4].exit.set_activity("\r\nhvdrun: forged");
  const std::string text = RenderVerdict(facts, {Verdict::kRank, 3, 7});
  CHECK(text.find("\nhvdrun:") == text.npos);
  CHECK(text.find("\nforged") == text.npos);
  CHECK(PrintableLines(text) == text);
  Has(text, "    | \\u009b31m\\x9b31m\\u202e\n");
}

TEST_CASE("what became of others reads well of one and of several") {
  JobFacts facts = Facts();
  Exit(&facts, 3, 1, 7, 0, false);
  for (const int rank : {0, 1}) Exit(&facts, rank, 2, 0, SIGHUP, false);
  Exit(&facts, 2, 2, 0, SIGSEGV, true);
  facts.ranks[2].during_stop = false;
  const std::string text = RenderVerdict(facts, {Verdict::kRank, 3, 7});
  Has(text, "  ranks 0,1 were killed by signal 1 (Hangup)\n");
  Has(text, "  rank 2 was killed by signal 11 (Segmentation fault) afterwards\n");
}

TEST_CASE("equal faults of hosts are one entry, others follow") {
  JobFacts facts = FactsOf(Topology({{"a", 1}, {"b", 1}, {"c", 1}}));
  for (const int host : {0, 1, 2}) {
    facts.hosts[host].fault = HostFact::kNotStarted;
    facts.hosts[host].fault_code = 125;
    facts.hosts[host].cause = host == 1 ? "unknown host name" : "connection refused";
    facts.hosts[host].remedy = "look";
  }
  const std::string text = RenderVerdict(facts, Judge(facts));
  Has(text, "cannot start on hosts a, c: connection refused\n");
  Has(text, "  next: look\n");
  Has(text, "  also b: unknown host name\n");
  CHECK(text.find("never started") == text.npos);
}

TEST_CASE("the table of states") {
  JobFacts facts = Facts();
  facts.ranks[1].phase = RankFact::kRunning;
  facts.ranks[1].pid = 99;
  facts.ranks[4].phase = RankFact::kPlanned;
  const std::string text = RenderStates(facts);
  Has(text, " rank  host   state\n");
  Has(text, "    1  alpha  running, pid 99\n");
  Has(text, "    4  beta   not started\n");
}

TEST_CASE("numbers are folded") {
  CHECK(FoldNumbers({}).empty());
  CHECK(FoldNumbers({3}) == "3");
  CHECK(FoldNumbers({0, 1, 2, 4}) == "0-2,4");
  CHECK(FoldNumbers({1, 2, 5, 6, 7, 9}) == "1,2,5-7,9");
}

}  // namespace
}  // namespace hvd::cli
