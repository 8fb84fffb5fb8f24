// SPDX-License-Identifier: Apache-2.0
// What hosts tell of links and of ranks that are held, on its way to the membership and the
// verdict.
#include <signal.h>

#include <catch2/catch.hpp>

#include "cli/report/verdict_text.h"
#include "tests/cli/job/elastic_table.h"

namespace hvd::cli {
namespace {

using Catch::Matchers::Contains;

constexpr char kSymptom[] = "cannot connect from b to rank 0 on a at 10.0.0.1:4444: no answer";

// A rank of `host` leaves the epoch, which is over since it cannot reach `far`.
void LeavesCut(ElasticTable* table, int host, uint64_t member, uint32_t far) {
  v1::Event event;
  v1::RankLeft& left = *event.mutable_rank_left();
  left.set_member(member);
  left.set_epoch(table->proposal.epoch());
  left.set_aborted(kSymptom);
  left.set_unreached(far);
  table->state.Heard(host, event, table->now);
}

TEST_CASE("three epochs in a row over a link that is cut leave one of its hosts out") {
  ElasticTable table(4, {.min_np = 1});
  table.Start();
  for (uint64_t epoch = 1; epoch <= 3; ++epoch) {
    LeavesCut(&table, 1, 3, 0);
    LeavesCut(&table, 1, 4, 1);
    CHECK(table.Wants() == "abort" + std::to_string(epoch) + "@0");
    for (uint64_t member = 1; member <= 4; ++member) table.Stand(member, epoch);
    for (const int host : {0, 1}) table.Quiet(host, epoch, 0);
    if (epoch == 3) continue;
    CHECK_THAT(table.Wants(), Contains("propose" + std::to_string(epoch + 1)));
    table.Meet();
    table.Wants();
    CHECK_THAT(table.said.back(),
               Contains("no data passes between b and a: cannot connect from b"));
  }
  CHECK(table.Wants() == "remove0@1 remove1@1 propose4@0");
  CHECK_THAT(table.said.back(), Contains("host b is left out: no data passes between a and b: "
                                         "cannot connect from b to rank 0"));
}

TEST_CASE("what is said of a rank of the same host, or of none, is no link") {
  ElasticTable table(4, {.min_np = 1});
  table.Start();
  for (const uint32_t far : {2, 99}) LeavesCut(&table, 1, 3, far);
  CHECK(table.state.facts().cut_links.empty());
}

TEST_CASE("the verdict of a job whose members stay names the link, and what may be in the way") {
  JobState state(Topology({{"a", 1}, {"b", 1}}), {}, 0);
  for (const int host : {0, 1}) state.HostGreeted(host, 0);
  state.TakeActions();
  v1::Event event;
  v1::RankExited& exit = *event.mutable_rank_exited();
  exit.set_member(2);
  exit.set_exit_code(1);
  exit.set_joined(true);
  exit.set_after_abort(true);
  exit.set_aborted(kSymptom);
  exit.set_unreached(0);
  exit.add_last_lines("hvd::Error");
  v1::Event joined;
  joined.mutable_rank_joined()->set_member(2);
  joined.mutable_rank_joined()->set_epoch(1);
  state.Heard(1, joined, 1);
  state.Heard(1, event, 31);
  const Verdict verdict = Judge(state.facts());
  CHECK(verdict.exit_code == 1);
  const std::string text = RenderVerdict(state.facts(), verdict);
  CHECK_THAT(text, Contains(std::string("  no data passes between b and a: ") + kSymptom + "\n"));
  CHECK_THAT(text, Contains("  next: is a route, a firewall or a cable"));
}

// ---- stalls ----

struct StalledTable : ElasticTable {
  StalledTable() : ElasticTable(4, {.min_np = 1}, Limits()) { Start(); }

  static StallLimits Limits() { return {.warn_s = 2, .abort_s = 5}; }
  // Rank 0 has waited for "t" for so long; host 1 is as `other` says.
  void Stall(double waited_s, const v1::HostPending& other) {
    v1::Event due;
    due.mutable_stall_due()->set_waited_s(waited_s);
    state.Heard(0, due, now);
    v1::Event mine;
    v1::WaitingTensor& tensor = *mine.mutable_host_pending()->add_tensors();
    tensor.set_name("t");
    tensor.set_what("barrier");
    tensor.set_waited_s(waited_s);
    for (const uint32_t rank : {0, 1, 2}) tensor.add_ranks(rank);
    state.Heard(0, mine, now);
    v1::Event theirs;
    *theirs.mutable_host_pending() = other;
    state.Heard(1, theirs, now);
  }
};

TEST_CASE("a rank that is held while the others wait is replaced when the job would end for it") {
  StalledTable table;
  v1::HostPending other;
  other.add_held()->set_rank(3);
  table.Stall(3, other);
  CHECK_THAT(table.Wants(), !Contains("abort"));
  CHECK_THAT(table.said.back(), Contains("'t' (barrier) waits for rank 3"));
  table.Stall(6, other);
  CHECK_THAT(table.Wants(), Contains("abort1@0 abort1@1 retire1@1"));
  CHECK(table.state.facts().ending == Ending::kNone);
  for (const uint64_t member : {1, 2, 3}) table.Stand(member, 1);
  table.Died(4, SIGTERM, 1, 3);
  table.Exited(4, 0, SIGTERM);
  for (const int host : {0, 1}) table.Quiet(host, 1, 3);
  CHECK_THAT(table.Wants(), Contains("spawn@1"));
  table.Meet();
  table.Wants();
  CHECK_THAT(table.said.back(),
             Contains("rank 3 on b is held (SIGSTOP, a debugger?) and is replaced after 6 s of "
                      "waiting; epoch 2: 3 ranks on 2 hosts; resumed at commit 3"));
}

// Returns the pending work of a rank in a ring where data from rank 0 to rank 2 does not all come.
v1::HostPending InRing(uint32_t rank, bool sends) {
  v1::HostPending pending;
  v1::RankWork& work = *pending.add_work();
  work.set_rank(rank);
  work.set_what("allreduce 'x'");
  work.set_still_s(6);
  work.set_executes(true);
  v1::MessagesSeen& seen = *pending.add_messages();
  seen.set_rank(rank);
  seen.set_peer(sends ? 2 : 0);
  seen.set_channel(2);
  seen.set_sent(sends ? 5 : 0);
  seen.set_asked(sends ? 0 : 5);
  seen.set_came(sends ? 0 : 3);
  return pending;
}

TEST_CASE("a link that falls silent under a collective ends its epoch, not the job") {
  StalledTable table;
  v1::Event due, mine, theirs;
  due.mutable_stall_due()->set_waited_s(6);
  *mine.mutable_host_pending() = InRing(0, true);
  *theirs.mutable_host_pending() = InRing(2, false);
  table.state.Heard(0, due, table.now);
  table.state.Heard(0, mine, table.now);
  table.state.Heard(1, theirs, table.now);
  CHECK_THAT(table.Wants(), Contains("abort1@0 abort1@1"));
  CHECK(table.state.facts().ending == Ending::kNone);
  for (uint64_t member = 1; member <= 4; ++member) table.Stand(member, 1);
  for (const int host : {0, 1}) table.Quiet(host, 1, 3);
  CHECK_THAT(table.Wants(), Contains("propose2"));
  table.Meet();
  table.Wants();
  CHECK_THAT(table.said.back(), Contains("no data passes between a and b: after 6 s of waiting"));
}

TEST_CASE("where no rank is held, a stall still ends the elastic job") {
  StalledTable table;
  table.Stall(6, {});
  CHECK_THAT(table.Wants(), Contains("stop@-1"));
  CHECK(Judge(table.state.facts()).exit_code == 124);
}

}  // namespace
}  // namespace hvd::cli
