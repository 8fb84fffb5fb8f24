// SPDX-License-Identifier: Apache-2.0
// hvd::elastic::run: a program's whole loop, through a death and a removal.
#include <catch2/catch.hpp>

#include "hvd/hvd.hpp"
#include "tests/runtime/api/elastic/member.h"

namespace hvd::rt {
namespace {

constexpr int64_t kSteps = 30, kDeath = 12;

// Adds up 1 to kSteps, each step's number shared out over the ranks; commits every third step.
// `at_death`: what a member of the first epoch does at step kDeath, which no commit has.
int AddUp(void (*at_death)(), bool must_finish) {
  MUST(hvd_init(nullptr) == HVD_OK);
  double sum = 0;
  int64_t step = 1;
  State state;
  state.add("sum", &sum, 1);
  state.add("step", &step, 1);
  int resets = 0;
  const bool finished = elastic::run(
      state,
      [&] {
        for (; step <= kSteps; ++step) {
          if (step % 3 == 1) state.commit();
          if (step == kDeath && epoch().number == 1) at_death();
          double part = static_cast<double>(step) / size();
          allreduce(&part, 1, Op::kSum, "part");
          sum += part;
        }
        state.commit();
      },
      [&](const Epoch& next) {
        ++resets;
        MUST(next.rank == rank());
      });
  MUST(finished == must_finish);
  if (finished) MUST(sum > 464.999 && sum < 465.001);
  MUST(resets == (epoch().number == 1 ? 0 : 1) || !finished);
  MUST(hvd_shutdown() == HVD_OK);
  return 0;
}

int Survivor() {
  return AddUp([] { MemberTell(); }, true);
}
int Dying() {
  return AddUp(
      [] {
        MemberTell();
        MemberAwait();
      },
      true);
}
int Late() {
  MUST(hvd_init(nullptr) == HVD_OK);
  double sum = 0;
  int64_t step = 1;
  State state;
  state.add("sum", &sum, 1);
  state.add("step", &step, 1);
  MUST(elastic::run(state, [&] {
    MUST(step >= 10);
    for (; step <= kSteps; ++step) {
      if (step % 3 == 1) state.commit();
      double part = static_cast<double>(step) / size();
      allreduce(&part, 1, Op::kSum, "part");
      sum += part;
    }
    state.commit();
  }));
  MUST(sum > 464.999 && sum < 465.001);
  MUST(hvd_shutdown() == HVD_OK);
  return 0;
}

TEST_CASE("a program goes on by itself when a member has died and another has come") {
  ElasticDaemon daemon;
  const uint64_t first = daemon.Bring(0, Survivor);
  const uint64_t second = daemon.Bring(1, Dying);
  daemon.Run({.epoch = 1, .hosts = {{0, {first, second}}}, .needy = {1}});
  daemon.AwaitTold(first);
  daemon.AwaitTold(second);
  daemon.Kill(second);
  daemon.Abort("rank 1 has died");
  daemon.AwaitLeave(first);
  const uint64_t newest = daemon.NewestCommit(0);
  CHECK(newest == 5);  // the sync's, and those before steps 1, 4, 7 and 10
  const uint64_t third = daemon.Bring(0, Late);
  // On another host, which has no state.
  daemon.Run({.epoch = 2,
              .hosts = {{0, {first}}, {1, {third}}},
              .resume_commit = newest,
              .needy = {1},
              .rolls_back = true,
              .survivors = 1});
  daemon.AwaitGoodEnds({first, third});
}

int Removed() {
  MUST(hvd_init(nullptr) == HVD_OK);
  State state;
  MUST(!elastic::run(state, [&] {
    MemberTell();
    MemberAwait();
    state.commit();
  }));
  MUST(!is_initialized());
  return 0;
}

TEST_CASE("run returns false in a member that is removed") {
  ElasticDaemon daemon;
  const uint64_t member = daemon.Bring(0, Removed);
  daemon.Run({.epoch = 1, .hosts = {{0, {member}}}});
  daemon.AwaitTold(member);
  daemon.SetChange(0);
  daemon.Open(member);
  daemon.AwaitLeave(member);
  daemon.AwaitJoin(member);
  daemon.Refuse(member, "this host is drained", 0, true);
  CHECK(daemon.AwaitEnd(member) == 0);
}

// Its on_reset finds that the members are to change once more.
int Twice() {
  MUST(hvd_init(nullptr) == HVD_OK);
  State state;
  int resets = 0, calls = 0;
  MUST(elastic::run(
      state,
      [&] {
        ++calls;
        if (epoch().number > 1) return;
        MemberTell();
        MemberAwait();
        state.commit();
      },
      [&](const Epoch& next) {
        ++resets;
        MemberTell();
        MemberAwait();
        if (next.number == 2) check_hosts();
      }));
  MUST(resets == 2);
  MUST(calls == 2);
  MUST(hvd_shutdown() == HVD_OK);
  return 0;
}

TEST_CASE("run goes on to the next epoch when on_reset is told of a change") {
  ElasticDaemon daemon;
  const uint64_t member = daemon.Bring(0, Twice);
  ElasticPlan plan = {.epoch = 1, .hosts = {{0, {member}}}};
  daemon.Run(plan);
  for (const uint64_t epoch : {2, 3}) {
    daemon.AwaitTold(member);
    daemon.SetChange(0);
    daemon.Open(member);
    daemon.AwaitLeave(member);
    plan.epoch = epoch;
    plan.resume_commit = 1;
    plan.survivors = 1;
    daemon.Run(plan);
  }
  daemon.AwaitTold(member);
  daemon.Open(member);
  daemon.AwaitGoodEnds({member});
}

}  // namespace
}  // namespace hvd::rt
