// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/staged/staged_course.h"

#include <catch2/catch.hpp>

namespace hvd::rt {
namespace {

using S = AskedState;
using E = AskedEvent;
using Clock = StagedCourse::Clock;

bool Idle() { return true; }
bool Busy() { return false; }

// A course of one request in this state, whose beginning has been told.
StagedCourse Begun(S state) {
  StagedCourse course({state});
  course.Hear(0, E::kBegin);
  course.NoteBegun();
  return course;
}

TEST_CASE("what goes by the host for certain is copied when the call begins, agreed or not") {
  CHECK(After(S::kAnnounced, E::kBegin).copies);
  CHECK(After(S::kAgreedFirst, E::kBegin).copies);
  CHECK(After(S::kAgreedFirst, E::kBegin).next == S::kAgreed);
  CHECK(After(S::kAnnounced, E::kAgree).next == S::kAgreedFirst);
  CHECK_FALSE(After(S::kAnnounced, E::kAgree).copies);
  CHECK(After(S::kCopies, E::kAgree).next == S::kAgreed);
  CHECK_FALSE(After(S::kCopies, E::kAgree).copies);
}

TEST_CASE("what NCCL may have is copied only when the ranks have agreed, or this rank joins") {
  CHECK_FALSE(After(S::kWaits, E::kBegin).copies);
  CHECK(After(S::kWaits, E::kAgree).copies);
  CHECK(After(S::kWaits, E::kJoin).copies);
  CHECK(After(S::kWaits, E::kJoin).next == S::kCopies);
  CHECK_FALSE(After(S::kWaits, E::kLaunch).copies);
  CHECK(After(S::kWaits, E::kLaunch).next == S::kLaunched);
}

TEST_CASE("what has been answered is copied no second time") {
  for (const S state : {S::kAgreed, S::kLaunched, S::kRefused}) {
    for (const E event : {E::kBegin, E::kAgree, E::kLaunch, E::kRefuse, E::kJoin}) {
      CHECK(After(state, event).next == state);
      CHECK_FALSE(After(state, event).copies);
    }
  }
}

TEST_CASE("a staged request is submitted when its bytes are here and the ranks have agreed") {
  StagedCourse course = Begun(S::kAnnounced);
  course.AddStage(0, false);
  CHECK_FALSE(course.MaySubmit(0));
  course.Tell(0, StageState::kHere);
  CHECK_FALSE(course.MaySubmit(0));
  CHECK_FALSE(course.HasSubmitted());
  course.Hear(0, E::kAgree);
  CHECK(course.MaySubmit(0));
  course.Tell(0, StageState::kSubmitted);
  CHECK_FALSE(course.MaySubmit(0));
  CHECK(course.HasSubmitted());
  CHECK_FALSE(course.IsComplete());
  CHECK_FALSE(course.IsQuiet());
  course.Tell(0, StageState::kAnswered);
  CHECK(course.IsComplete());
  CHECK(course.IsQuiet());
}

TEST_CASE("a rank that joins submits what is here before the others have announced it") {
  StagedCourse course = Begun(S::kAnnounced);
  course.AddStage(0, true);
  CHECK_FALSE(course.MaySubmit(0));
  course.Hurry();
  CHECK(course.MaySubmit(0));
}

TEST_CASE("the rest is the engine's when the set goes by NCCL") {
  StagedCourse course = Begun(S::kWaits);
  CHECK(course.AnyWaits());
  CHECK_FALSE(course.HasSubmitted());
  course.LeaveRestToEngine();
  CHECK(course.HasSubmitted());
  CHECK_FALSE(course.IsComplete());
  course.Hear(0, E::kLaunch);
  CHECK_FALSE(course.AnyWaits());
  CHECK(course.IsComplete());
}

TEST_CASE("a call of two ways is complete when both have ended") {
  StagedCourse course({S::kWaits, S::kAnnounced});
  CHECK_FALSE(course.Hear(0, E::kBegin));
  CHECK(course.Hear(1, E::kBegin));
  course.NoteBegun();
  course.AddStage(1, true);
  course.Hear(0, E::kLaunch);
  course.Hear(1, E::kAgree);
  CHECK_FALSE(course.IsComplete());
  course.Tell(0, StageState::kAnswered);
  CHECK(course.IsComplete());
}

TEST_CASE(
    "after a failure nothing is copied or submitted, and all that is asked for counts as so") {
  StagedCourse course = Begun(S::kWaits);
  course.AddStage(0, true);
  course.Hurry();
  course.Fail(absl::AbortedError("gone"), Clock::time_point::max());
  CHECK_FALSE(course.Hear(0, E::kAgree));
  CHECK_FALSE(course.MaySubmit(0));
  CHECK(course.HasSubmitted());
  CHECK_FALSE(course.IsComplete());
}

TEST_CASE("a failed call ends when the device has let go of its tensors, or its time is over") {
  const Clock::time_point now = Clock::now();
  StagedCourse course = Begun(S::kAnnounced);
  CHECK_FALSE(course.MayEnd(Clock::time_point::max(), Idle));
  course.Owe();
  course.Fail(absl::AbortedError("gone"), now + std::chrono::milliseconds(1));
  CHECK_FALSE(course.MayEnd(now, Idle));
  CHECK(course.MayEnd(now + std::chrono::milliseconds(1), Idle));
  course.NotePaid();
  CHECK(course.MayEnd(now, Busy));
  course.Lose();
  CHECK_FALSE(course.MayEnd(now, Busy));
  CHECK(course.MayEnd(now, Idle));
}

TEST_CASE("a call that has failed before it begins waits for its beginning") {
  const Clock::time_point now = Clock::now();
  StagedCourse course({S::kAnnounced});
  course.Fail(absl::AbortedError("gone"), now + std::chrono::seconds(1));
  CHECK_FALSE(course.MayEnd(now, Idle));
  course.Hear(0, E::kRefuse);
  CHECK_FALSE(course.IsQuiet());
  course.NoteBegun();
  CHECK(course.MayEnd(now, Idle));
  CHECK(course.IsQuiet());
}

}  // namespace
}  // namespace hvd::rt
