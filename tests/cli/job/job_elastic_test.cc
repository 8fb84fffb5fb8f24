// SPDX-License-Identifier: Apache-2.0
#include <signal.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "base/process_end.h"
#include "cli/report/verdict_text.h"
#include "tests/cli/job/elastic_table.h"

namespace hvd::cli {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("an elastic job goes on without a rank that died, and ends well") {
  ElasticTable table(4, {.min_np = 2});
  table.Start();
  CHECK(table.said.back() == "epoch 1: 4 ranks on 2 hosts");
  table.now = 10;
  table.Died(2, SIGKILL, 1, 5);
  CHECK(table.Wants() == "abort1@1 spawn@0");
  table.Exited(2, 0, SIGKILL);
  CHECK(table.Wants().empty());
  for (const uint64_t member : {1, 3, 4}) table.Stand(member, 1);
  table.Quiet(0, 1, 5);
  table.now = 10.3;
  table.Quiet(1, 1, 5);
  CHECK(table.Wants() == "propose2@0 propose2@1");
  CHECK(NameRank(table.state.facts(), 2) == "rank 1 on b");
  table.Meet();
  CHECK(table.Wants() == "table@0 table@1 go2@0 go2@1");
  CHECK(table.said.back() ==
        "rank 1 on a was killed by signal 9 (Killed); epoch 2: 3 ranks on 2 hosts; resumed at "
        "commit 5 after 0.3 s");
  SECTION("the replacement joins") {
    table.Stand(5, 0);
    CHECK(table.Wants() == "change2@0 change2@1");
    for (const uint64_t member : {1, 3, 4}) table.Stand(member, 2);
    table.Quiet(0, 2, 9);
    table.Quiet(1, 2, 9);
    CHECK(table.Wants() == "propose3@0 propose3@1");
    table.Meet();
    table.Wants();
    for (const uint64_t member : {1, 3, 4, 5}) table.Exited(member, 0);
  }
  SECTION("the job ends before it joins") {
    for (const uint64_t member : {1, 3}) table.Exited(member, 0);
    CHECK(table.Wants().empty());
    table.Exited(4, 0);
    CHECK(table.Wants() == "remove2@0");
    CHECK(!table.state.finished());
    table.Exited(5, 1);  // whatever it makes of that
  }
  CHECK(table.Wants().empty());
  CHECK(table.state.finished());
  CHECK(Judge(table.state.facts()).exit_code == 0);
  CHECK(table.state.facts().epochs.size() >= 2);
}

TEST_CASE("a death before any epoch that another has made good is no failure of the job's") {
  ElasticTable table(2, {.min_np = 1});
  table.state.Discovered({ElasticTable::Slots("a", 2)}, table.now);
  table.Ready(0);
  CHECK(table.Wants() == "reach0 prepare0 spawn@0");
  table.now = 1;
  SECTION("it is replaced, and all end well") {
    table.Died(1, SIGKILL, 0, 0);
    table.Exited(1, 0, SIGKILL);
    CHECK(table.Wants() == "spawn@0");
    table.Exited(2, 0);
    CHECK(!table.state.finished());
    table.Exited(3, 0);
    CHECK(table.state.finished());
    CHECK(Judge(table.state.facts()).exit_code == 0);
  }
  SECTION("its worker's link broke") {
    table.Broke(1, v1::WorkerEnd());
    table.Exited(1, 0, SIGTERM);
    CHECK(table.Wants() == "retire0@0 spawn@0");
    table.Exited(2, 0);
    table.Exited(3, 0);
    CHECK(table.state.finished());
    CHECK(Judge(table.state.facts()).exit_code == 0);
  }
}

TEST_CASE("a death that nobody makes good is one of the job's, though it ran -np times") {
  ElasticTable table(1, {.min_np = 1});
  table.state.Discovered({ElasticTable::Slots("a", 2)}, table.now);
  table.Ready(0);
  CHECK(table.Wants() == "reach0 prepare0 spawn@0");
  table.Exited(2, 0);
  CHECK(!table.state.finished());
  table.Exited(1, 0, SIGKILL);
  CHECK(table.Wants() == "abort0@-1 stop@-1");
  CHECK(Judge(table.state.facts()).exit_code == 137);
}

TEST_CASE("an elastic job loses a host, whose ranks are no failure of the job's") {
  ElasticTable table(4, {.min_np = 2, .cooldown_least_s = 10});
  table.Start();
  table.state.HostLost(1, "the connection to its hvdd closed", table.now);
  CHECK(table.Wants() == "drop1 abort1@0");
  for (const uint64_t member : {1, 2}) table.Stand(member, 1);
  table.Quiet(0, 1, 41);
  CHECK(table.Wants() == "propose2@0");
  table.Meet();
  CHECK(table.Wants() == "table@0 go2@0");
  CHECK_THAT(table.said.back(),
             Contains("b lost; epoch 2: 2 ranks on 1 host; resumed at commit 41"));
  SECTION("it ends well") {
    for (const uint64_t member : {1, 2}) table.Exited(member, 0);
    CHECK(table.state.finished());
    CHECK(Judge(table.state.facts()).exit_code == 0);
  }
  SECTION("the host comes back under another number") {
    CHECK(table.state.deadline() == Approx(11));
    table.now = 11;
    table.state.Tick(11);
    CHECK(table.Wants() == "reach2");
    table.Ready(2);
    CHECK(table.Wants() == "prepare2 spawn@2");
    CHECK(table.state.facts().hosts[2].name == "b");
    // Words that still come about the old number concern nobody.
    table.state.HostLost(1, "again", 11);
    table.state.HostDetail(1, {"hvdd was killed", ""}, 11);
    CHECK(table.Wants().empty());
  }
}

TEST_CASE("a rank that exits with 0 while others go on is replaced, and named") {
  ElasticTable table(4, {.min_np = 1});
  table.Start();
  table.Exited(1, 0);
  CHECK(table.Wants().empty());
  table.Stand(3, 1);  // it waits for another epoch
  CHECK(table.Wants() == "spawn@0");
  for (const uint64_t member : {2, 4}) table.Stand(member, 1);
  table.Quiet(0, 1, 5);
  table.Quiet(1, 1, 5);
  table.Wants();
  table.Meet();
  table.Wants();
  CHECK_THAT(table.said.back(), Contains("rank 0 on a exited (code 0) after hvd's shutdown while "
                                         "other ranks went on; epoch 2: 3 ranks on 2 hosts"));
}

TEST_CASE("a rank that fails each time ends the job that needs it, with its code and last words") {
  ElasticTable table(2, {.min_np = 2});
  table.state.Discovered({ElasticTable::Slots("a", 2)}, table.now);
  table.Ready(0);
  for (const uint64_t member : {1, 2}) table.Stand(member, 0);
  table.Wants();
  table.Meet();
  const int code = GENERATE(0, 3);
  uint64_t victim = 2;
  for (uint64_t epoch = 1; epoch <= 3; ++epoch) {
    v1::Event died;
    died.mutable_member_died()->set_member(victim);
    died.mutable_member_died()->set_exit_code(code);
    died.mutable_member_died()->set_epoch(epoch);
    died.mutable_member_died()->set_commit(4 + epoch);  // a sync's, each time
    died.mutable_member_died()->set_steps(4);
    table.state.Heard(0, died, table.now);
    table.Stand(1, epoch);
    table.Quiet(0, epoch, 4 + epoch);
    table.Exited(victim, code);
    table.now += 100;
    table.state.Tick(table.now);
    table.Wants();
    if (epoch == 3) break;
    REQUIRE(!table.state.finished());
    victim = table.state.facts().ranks.size();
    table.Stand(victim, 0);
    table.Wants();
    table.Meet();
    table.Wants();
  }
  const JobFacts& facts = table.state.facts();
  CHECK(facts.ending == Ending::kProgramBug);
  const Verdict verdict = Judge(facts);
  CHECK(verdict.exit_code == (code == 0 ? 1 : 3));
  CHECK_THAT(RenderVerdict(facts, verdict), Contains("the program fails by itself: rank 1 on a "));
}

TEST_CASE("a program that fails by itself ends the elastic job with its code and last words") {
  ElasticTable table(4, {.min_np = 1});
  table.Start();
  table.Exited(1, 7);
  table.Wants();
  table.Exited(3, 7);
  CHECK_THAT(table.Wants(), Contains("stop@-1"));
  const Verdict verdict = Judge(table.state.facts());
  CHECK(verdict.kind == Verdict::kEnding);
  CHECK(verdict.exit_code == 7);
  const std::string text = RenderVerdict(table.state.facts(), verdict);
  CHECK_THAT(text, Contains("the program fails by itself: rank 2 on b exited with code 7"));
  CHECK_THAT(text, Contains("next: mend the program"));
}

TEST_CASE("ranks that die of a signal passed on to them end the job, others are replaced") {
  const bool passed_on = GENERATE(false, true);
  CAPTURE(passed_on);
  ElasticTable table(4, {.min_np = 1});
  table.Start();
  const int signal = GENERATE(SIGQUIT, SIGUSR1, SIGHUP);
  if (passed_on) table.state.Signalled(signal, table.now);
  table.Wants();
  table.Died(3, signal, 1, 0);
  const std::string wants = table.Wants();
  CHECK((wants.find("stop@-1") != std::string::npos) == passed_on);
  const Verdict verdict = Judge(table.state.facts());
  CHECK(verdict.exit_code == (passed_on ? 128 + signal : 0));
  if (!passed_on) return;
  const std::string text = RenderVerdict(table.state.facts(), verdict);
  CHECK_THAT(text, Contains(NameSignal(signal) + ": rank 2 on b was killed by signal"));
  CHECK((text.find("has no handler for it") != std::string::npos) == (signal != SIGQUIT));
}

v1::WorkerEnd WorkerOf(int code) {
  v1::WorkerEnd worker;
  worker.set_pid(7);
  worker.set_known(true);
  worker.set_exit_code(code);
  return worker;
}

TEST_CASE("a program that fails by itself behind wrappers ends the job with its own code") {
  ElasticTable table(4, {.min_np = 1});
  table.Start();
  table.Broke(1, WorkerOf(7));
  CHECK_THAT(table.Wants(), Contains("retire0@0"));
  table.Broke(3, WorkerOf(7));
  CHECK_THAT(table.Wants(), Contains("stop@-1"));
  table.Exited(3, 0, SIGTERM);  // as it was asked to
  CHECK(Judge(table.state.facts()).exit_code == 7);
}

TEST_CASE("ranks of which nobody knows how they died are no fault of the program's") {
  ElasticTable table(4, {.min_np = 1});
  table.Start();
  SECTION("workers behind wrappers") {
    v1::WorkerEnd worker;
    worker.set_pid(7);
    table.Broke(1, worker);
    table.Broke(3, worker);
  }
  SECTION("the shim is late") {
    table.Broke(1, {});
    table.Broke(3, {});
  }
  CHECK_THAT(table.Wants(), !Contains("stop"));
}

TEST_CASE(
    "a rank of which nobody knows how it died is no failed start, before any commit neither") {
  const uint64_t commit = GENERATE(0, 4);
  const bool known = GENERATE(false, true);
  ElasticTable table(4, {.min_np = 1});
  table.Start();
  table.Broke(1, {}, 4);
  table.Quiet(0, 1, 4);
  v1::WorkerEnd end;
  end.set_known(known);
  end.set_exit_code(known ? 7 : 0);
  table.Broke(3, end, commit);
  table.Wants();
  const bool failed_start =
      std::any_of(table.said.begin(), table.said.end(), [](const std::string& line) {
        return line.find("before it had a part in any commit") != std::string::npos;
      });
  CHECK(failed_start == (known && commit == 0));
}

TEST_CASE("a host that has stopped is let go when the last words of its ranks have come") {
  ElasticTable table(4, {.min_np = 2});
  table.Start();
  for (const uint64_t member : {3, 4}) {
    v1::Event event;
    event.mutable_rank_exited()->set_member(member);
    table.state.Heard(1, event, table.now);
  }
  v1::Event stopped;
  stopped.mutable_stopped();
  table.state.Heard(1, stopped, table.now);
  CHECK_THAT(table.Wants(), !Contains("drop1"));
  SECTION("they come") {
    for (const int rank : {2, 3, 2}) table.state.StreamMoved(rank, true, table.now);
    CHECK_THAT(table.Wants(), !Contains("drop1"));
    table.state.StreamMoved(3, true, table.now);
    CHECK_THAT(table.Wants(), Contains("drop1"));
  }
  SECTION("they never come") {
    table.state.StreamMoved(3, false, table.now + 5);
    table.state.Tick(table.now + 5 + kOutputPatienceS - 0.1);
    CHECK_THAT(table.Wants(), !Contains("drop1"));
    table.state.Tick(table.now + 5 + kOutputPatienceS);
    CHECK_THAT(table.Wants(), Contains("drop1"));
  }
}

TEST_CASE("hosts that are not reached are tried again, and too few ranks end the job") {
  ElasticTable table(2, {.min_np = 2, .elastic_timeout_s = 60, .cooldown_least_s = 100});
  table.state.Discovered({ElasticTable::Slots("a", 2)}, 0);
  CHECK(table.Wants() == "reach0");
  CHECK(table.state.deadline() == Approx(30));  // the start's
  HostFact fault;
  fault.cause = "no route to host";
  table.state.HostNotStarted(0, fault, 5);
  CHECK(table.Wants() == "drop0");
  CHECK(table.said.back() == "host a: no route to host; it is left alone for 100 s");
  CHECK(table.state.deadline() == Approx(60));
  table.state.Tick(60);
  CHECK(table.state.finished());
  const Verdict verdict = Judge(table.state.facts());
  CHECK(verdict.exit_code == 125);
  CHECK_THAT(RenderVerdict(table.state.facts(), verdict), Contains("host a: no route to host"));
}

TEST_CASE(
    "a rank that broke its epoch by leaving is told to the other hosts, and the job goes on") {
  ElasticTable table(4, {.min_np = 1});
  table.Start();
  v1::Event event;
  event.mutable_rank_left()->set_member(3);
  event.mutable_rank_left()->set_epoch(1);
  event.mutable_rank_left()->set_aborted("rank 2 left");
  event.mutable_rank_left()->set_abort_rank(2);
  table.state.Heard(1, event, table.now);
  CHECK(table.Wants() == "abort1@0");
  CHECK(table.state.facts().ranks[2].cause);
  for (uint64_t member = 1; member <= 4; ++member) table.Stand(member, 1);
  for (const int host : {0, 1}) table.Quiet(host, 1, 2);
  CHECK(table.Wants() == "propose2@0 propose2@1");
}

TEST_CASE("a host that is still being reached is let go before anything runs there") {
  ElasticTable table(2, {.min_np = 1, .max_np = 2});
  table.state.Discovered({ElasticTable::Slots("a", 1), ElasticTable::Slots("b", 2)}, 0);
  CHECK(table.Wants() == "reach0 reach1");
  table.Ready(0);
  CHECK(table.Wants() == "prepare0 spawn@0");
  table.state.Discovered({ElasticTable::Slots("a", 2)}, 1);
  CHECK(table.Wants() == "spawn@0 drop1");
  CHECK(table.state.facts().ranks.size() == 2);
  table.state.HostGreeted(1, 2);  // what was under way
  CHECK(table.Wants().empty());
}

TEST_CASE("no list of hosts ever comes") {
  ElasticTable table(2);
  table.state.DiscoveryFailed("the script is not there", 1);
  CHECK(table.state.finished());
  CHECK(Judge(table.state.facts()).exit_code == 125);
}

}  // namespace
}  // namespace hvd::cli
