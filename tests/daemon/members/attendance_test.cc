// SPDX-License-Identifier: Apache-2.0
#include "daemon/members/attendance.h"

#include <catch2/catch.hpp>

namespace hvd::daemon {
namespace {

void Propose(Attendance* attendance, uint64_t number, std::vector<int> slots) {
  auto plan = std::make_shared<EpochPlan>();
  plan->epoch = number;
  plan->host = 0;
  plan->topology = Topology({{"here", static_cast<int>(slots.size())}});
  plan->slots = std::move(slots);
  attendance->At(number).Propose(plan);
  for (const int slot : plan->slots) attendance->member(slot).newest_plan = plan;
}

void Enter(Attendance* attendance, uint64_t number, int slot) {
  attendance->Enter(slot, number);
  attendance->At(number).Enter(slot);
}

TEST_CASE("a member's next epoch lists it and is newer than its last") {
  Attendance attendance(2, false);
  CHECK(attendance.NextFor(0) == 0);
  Propose(&attendance, 1, {1});
  Propose(&attendance, 2, {0, 1});
  CHECK(attendance.NextFor(0) == 2);
  CHECK(attendance.NextFor(1) == 1);
  Enter(&attendance, 1, 1);
  CHECK(attendance.NextFor(1) == 2);
  attendance.member(1).refusing = 2;
  CHECK(attendance.NextFor(1) == 0);
}

TEST_CASE("an epoch that was aborted before its proposal is nobody's next") {
  Attendance attendance(1, false);
  attendance.At(1).Abort("host1 is lost");
  CHECK(attendance.NextFor(0) == 0);
  CHECK(attendance.plan(1) == nullptr);
}

TEST_CASE("who has left, is in an epoch or went away in it are three things") {
  Attendance attendance(2, false);
  Propose(&attendance, 1, {0, 1});
  for (const int slot : {0, 1}) Enter(&attendance, 1, slot);
  CHECK(attendance.in_live_epoch(0));
  attendance.At(1).Leave(0);
  CHECK(attendance.left(0));
  CHECK_FALSE(attendance.in_epoch(0));
  attendance.At(1).Abort("rank 1 died");
  CHECK(attendance.in_epoch(1));
  CHECK_FALSE(attendance.in_live_epoch(1));
  attendance.At(1).Abandon(1);
  attendance.member(1).broke = true;
  CHECK_FALSE(attendance.left(1));
}

TEST_CASE("members hear of an abort in their last epoch, by a refusal or by a stop") {
  Attendance attendance(3, false);
  Propose(&attendance, 1, {0, 1});
  Enter(&attendance, 1, 0);
  attendance.At(1).Abort("rank 1 died");
  attendance.member(2).refused = true;
  CHECK(attendance.after_abort(0));
  CHECK_FALSE(attendance.after_abort(1));  // it never asked
  CHECK(attendance.after_abort(2));
  attendance.Close("the job is stopped");
  CHECK(attendance.after_abort(1));
}

TEST_CASE("an aborted epoch is kept until it has refused or held every member") {
  Attendance attendance(2, true);
  Propose(&attendance, 1, {0, 1});
  attendance.At(1).Abort("host1 is lost");
  attendance.member(0).refusing = 2;
  attendance.ForgetRefusing();
  CHECK(attendance.Find(1) != nullptr);
  SECTION("another asks") { attendance.member(1).refusing = 2; }
  SECTION("another is gone, and never asks again") { attendance.member(1).gone = "it died"; }
  attendance.ForgetRefusing();
  CHECK(attendance.Find(1) == nullptr);
}

TEST_CASE("a slot that is used again knows nothing of the member before") {
  Attendance attendance(2, true);
  Propose(&attendance, 1, {0, 1});
  Enter(&attendance, 1, 0);
  attendance.member(0).removed = "its host is given back";
  attendance.Reset(0);
  CHECK_FALSE(attendance.in_epoch(0));
  CHECK_FALSE(attendance.joined_ever(0));
  CHECK_FALSE(attendance.removed(0));
  CHECK(attendance.newest_plan(0) == nullptr);
  CHECK(attendance.NextFor(0) == 0);
}

}  // namespace
}  // namespace hvd::daemon
