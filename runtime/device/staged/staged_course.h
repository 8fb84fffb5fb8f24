// SPDX-License-Identifier: Apache-2.0
// How far a call is on its way by the host: what has become of each of its requests, of each staged
// request that these were made into, and of the call. A table of states and events. Pure.
//
// Threads: one at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace hvd::rt {

// A request of the call.
enum class AskedState {
  kWaits,        // announced; NCCL may have it: nothing is copied before the ranks have agreed
  kAnnounced,    // announced; goes by the host once the call begins
  kAgreedFirst,  // agreed on before the call begins, or a send or receive, which need not be
  kCopies,       // on its way by the host; the ranks have not agreed yet
  kAgreed,       // on its way by the host
  kLaunched,     // NCCL has it
  kRefused,      // the ranks have not agreed
};
enum class AskedEvent {
  kBegin,   // the call begins
  kAgree,   // all ranks have announced it, and it was not launched
  kLaunch,  // all ranks have announced it, and NCCL has it
  kRefuse,  // the ranks do not agree
  kJoin,    // this rank is about to join, and its set goes by the host
};
struct AskedStep {
  AskedState next = AskedState::kWaits;
  bool copies = false;  // its bytes are to be copied to host memory now
};
AskedStep After(AskedState state, AskedEvent event);

// A staged request: its bytes are copied to host memory, the engine has it, the engine has
// answered.
enum class StageState { kComing, kHere, kSubmitted, kAnswered };

class StagedCourse {
 public:
  using Clock = std::chrono::steady_clock;

  explicit StagedCourse(std::vector<AskedState> asked) : asked_(std::move(asked)) {}

  // ---- the call ----
  // The events of its beginning have been told.
  void NoteBegun() { begun_ = true; }
  // It goes no further. The device has until `gives_up_at` to let go of the caller's tensors.
  void Fail(const absl::Status& why, Clock::time_point gives_up_at);
  // OK: it has not failed.
  const absl::Status& failure() const { return failure_; }
  // The device tells nothing of it any more.
  void Lose() { lost_ = true; }
  // The staged requests are submitted without the ranks' agreement from now on.
  void Hurry() { hurries_ = true; }
  // The engine does what has been announced and has not begun.
  void LeaveRestToEngine() { engine_has_rest_ = true; }
  // The driver owes a word about a copy; it has given it.
  void Owe() { ++owed_; }
  void NotePaid() { --owed_; }

  // ---- a request of it ----
  // Takes in what happens to it. True: its bytes are to be copied to host memory now.
  bool Hear(size_t request, AskedEvent event);
  // One that NCCL may still have, and of which nothing is copied.
  bool Waits(size_t request) const { return asked_[request] == AskedState::kWaits; }
  bool AnyWaits() const;

  // ---- a staged request ----
  // Adds one of this request of the call. `is_here`: it brings nothing.
  void AddStage(size_t request, bool is_here);
  void Tell(size_t stage, StageState state) { stages_[stage].state = state; }
  // It is here, and the others will take part in it.
  bool MaySubmit(size_t stage) const;

  // ---- what follows ----
  // All that was asked for is on the device, or on its way there.
  bool IsComplete() const;
  // Nothing more is to be submitted.
  bool HasSubmitted() const;
  // Neither the engine nor the device has anything of it any more.
  bool IsQuiet() const;
  // It has failed, and the device has let go of the caller's tensors, or its time is over.
  // `is_idle`: nothing is under way on the device.
  bool MayEnd(Clock::time_point now, absl::FunctionRef<bool()> is_idle) const;

 private:
  struct Stage {
    size_t request = 0;
    StageState state = StageState::kComing;
  };

  std::vector<AskedState> asked_;
  std::vector<Stage> stages_;
  bool begun_ = false;
  bool hurries_ = false;
  bool engine_has_rest_ = false;
  int owed_ = 0;  // words of the driver
  bool lost_ = false;
  absl::Status failure_;
  Clock::time_point gives_up_at_;
};

}  // namespace hvd::rt
