// SPDX-License-Identifier: Apache-2.0
#include "cli/report/verdict_advice.h"

#include <signal.h>

#include <catch2/catch.hpp>

namespace hvd::cli {
namespace {

using Catch::Matchers::Contains;

JobFacts TwoRanks() {
  JobFacts facts = FactsOf(Topology({{"alpha", 1}, {"beta", 1}}));
  for (RankFact& rank : facts.ranks) rank.phase = RankFact::kExited;
  return facts;
}

std::string AfterSignal(int signal, bool core = false, bool out_of_memory = false) {
  JobFacts facts = TwoRanks();
  facts.ranks[1].exit.set_signal(signal);
  facts.ranks[1].exit.set_core_dumped(core);
  facts.ranks[1].exit.set_out_of_memory(out_of_memory);
  return NextStep(facts, {Verdict::kRank, 1, 128 + signal});
}

TEST_CASE("a rank's death says where to look") {
  CHECK_THAT(AfterSignal(SIGSEGV), Contains("ulimit -c unlimited"));
  CHECK(AfterSignal(SIGABRT, true) == "open its core file on beta with a debugger");
  CHECK_THAT(AfterSignal(SIGKILL), Contains("find who killed it on beta"));
  CHECK_THAT(AfterSignal(SIGKILL, false, true), Contains("a smaller batch"));
  CHECK_THAT(AfterSignal(SIGXCPU), Contains("ulimit -t"));
}

TEST_CASE("an exit code is explained by last lines, and by trying where there are none") {
  JobFacts facts = TwoRanks();
  facts.ranks[1].exit.set_exit_code(3);
  CHECK_THAT(NextStep(facts, {Verdict::kRank, 1, 3}), Contains("run the command alone on beta"));
  facts.ranks[1].exit.add_last_lines("ValueError: no");
  CHECK(NextStep(facts, {Verdict::kRank, 1, 3}).empty());
}

TEST_CASE("ranks that run unequal numbers of steps are told so, whichever of them is blamed") {
  JobFacts facts = TwoRanks();
  facts.ranks[1].exit.set_exit_code(1);
  facts.ranks[1].exit.add_last_lines("AbortedError");
  CHECK(NextStep(facts, {Verdict::kRank, 1, 1}).empty());
  facts.ranks[1].exit.set_aborted(
      "rank 0 has left the job (shutdown) while other ranks wait for it in 'dense/kernel'");
  const std::string next = NextStep(facts, {Verdict::kRank, 1, 1});
  CHECK_THAT(next, Contains("as many steps") && Contains("MetricAverageCallback"));
  facts.ranks[0].early = true;
  facts.ranks[0].exit.set_joined(true);
  CHECK(NextStep(facts, {Verdict::kRank, 0, 1}) == next);
}

TEST_CASE("a rank that has left by an exception of its own is told nothing of steps") {
  JobFacts facts = TwoRanks();
  facts.ranks[1].exit.set_exit_code(1);
  facts.ranks[1].exit.add_last_lines("KeyError: 'boom'");
  facts.ranks[1].exit.set_aborted(
      "rank 1 has left the job (shutdown) while other ranks wait for it in 'unnamed call 1'");
  CHECK(NextStep(facts, {Verdict::kRank, 1, 1}).empty());
}

TEST_CASE("a program that wants horovod is told how it gets it") {
  JobFacts facts = TwoRanks();
  facts.ranks[1].exit.set_exit_code(1);
  facts.ranks[1].exit.add_last_lines("    import horovod.torch as hvd");
  facts.ranks[1].exit.add_last_lines("ModuleNotFoundError: No module named 'horovod'");
  CHECK_THAT(NextStep(facts, {Verdict::kRank, 1, 1}), Contains("give hvdrun --compat horovod"));
  facts.compat_horovod = true;
  CHECK_THAT(NextStep(facts, {Verdict::kRank, 1, 1}), Contains("is hvd on beta where it is here"));
}

TEST_CASE("a program whose JAX finds no coordinator is told how it finds one") {
  JobFacts facts = TwoRanks();
  facts.ranks[1].exit.set_exit_code(1);
  facts.ranks[1].exit.add_last_lines("ValueError: coordinator_address should be defined.");
  CHECK_THAT(NextStep(facts, {Verdict::kRank, 1, 1}), Contains("import hvd.jax before"));
}

TEST_CASE("what could not be started says so once") {
  JobFacts facts = TwoRanks();
  facts.ranks[1].exit.set_exit_code(127);
  facts.ranks[1].exit.set_exec_error("command 'x' not found on PATH (/bin)");
  CHECK_THAT(NextStep(facts, {Verdict::kRank, 1, 127}), Contains("whole path"));
  facts.ranks[1].exit.set_exec_error("cannot run 'x': no loader; next: file x");
  CHECK(NextStep(facts, {Verdict::kRank, 1, 127}).empty());
}

TEST_CASE("an early exit, a lost host and an ending have a next step of their own") {
  JobFacts facts = TwoRanks();
  facts.ranks[1].early = true;
  CHECK_THAT(NextStep(facts, {Verdict::kRank, 1, 1}), Contains("call hvd_init"));
  facts.ranks[1].exit.set_joined(true);
  CHECK_THAT(NextStep(facts, {Verdict::kRank, 1, 1}), Contains("hvd_join"));
  facts.hosts[0].fault = HostFact::kLost;
  CHECK_THAT(NextStep(facts, {Verdict::kHost, 0, 125}), Contains("what became of alpha"));
  facts.hosts[0].remedy = "look";
  CHECK(NextStep(facts, {Verdict::kHost, 0, 125}).empty());
  facts.ending = Ending::kTimedOut;
  CHECK_THAT(NextStep(facts, {Verdict::kEnding, -1, 124}), Contains("--timeout"));
  facts.ending = Ending::kInterrupted;
  CHECK(NextStep(facts, {Verdict::kEnding, -1, 130}).empty());
}

}  // namespace
}  // namespace hvd::cli
