// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/staged/staged_course.h"

#include <algorithm>
#include <array>

namespace hvd::rt {
namespace {

constexpr size_t kStates = 7, kEvents = 5;
using Row = std::array<AskedStep, kEvents>;  // by event

constexpr AskedStep Copy(AskedState next) { return {next, true}; }
constexpr AskedStep Go(AskedState next) { return {next, false}; }

// What has been answered stays as it is, but for one that the call has yet to begin.
constexpr Row Ended(AskedState state) {
  return {Go(state), Go(state), Go(state), Go(state), Go(state)};
}

constexpr std::array<Row, kStates> Table() {
  using S = AskedState;
  return {
      //    kBegin               kAgree                kLaunch           kRefuse          kJoin
      Row{Go(S::kWaits), Copy(S::kAgreed), Go(S::kLaunched), Go(S::kRefused), Copy(S::kCopies)},
      Row{Copy(S::kCopies), Go(S::kAgreedFirst), Go(S::kLaunched), Go(S::kRefused),
          Go(S::kAnnounced)},
      Row{Copy(S::kAgreed), Go(S::kAgreedFirst), Go(S::kAgreedFirst), Go(S::kAgreedFirst),
          Go(S::kAgreedFirst)},
      Row{Go(S::kCopies), Go(S::kAgreed), Go(S::kLaunched), Go(S::kRefused), Go(S::kCopies)},
      Ended(S::kAgreed),
      Ended(S::kLaunched),
      Ended(S::kRefused),
  };
}
constexpr std::array<Row, kStates> kTable = Table();

bool IsAnswered(AskedState state) {
  return state != AskedState::kWaits && state != AskedState::kAnnounced &&
         state != AskedState::kCopies;
}

bool IsAgreed(AskedState state) {
  return state == AskedState::kAgreed || state == AskedState::kLaunched ||
         state == AskedState::kAgreedFirst;
}

// By the host or by NCCL.
bool IsOnItsWay(AskedState state) {
  return state == AskedState::kCopies || state == AskedState::kAgreed ||
         state == AskedState::kLaunched;
}

}  // namespace

AskedStep After(AskedState state, AskedEvent event) {
  return kTable[static_cast<size_t>(state)][static_cast<size_t>(event)];
}

void StagedCourse::Fail(const absl::Status& why, Clock::time_point gives_up_at) {
  failure_ = why;
  gives_up_at_ = gives_up_at;
}

bool StagedCourse::Hear(size_t request, AskedEvent event) {
  const AskedStep step = After(asked_[request], event);
  asked_[request] = step.next;
  return step.copies && failure_.ok();
}

bool StagedCourse::AnyWaits() const {
  return std::find(asked_.begin(), asked_.end(), AskedState::kWaits) != asked_.end();
}

void StagedCourse::AddStage(size_t request, bool is_here) {
  stages_.push_back({request, is_here ? StageState::kHere : StageState::kComing});
}

bool StagedCourse::MaySubmit(size_t stage) const {
  const auto& [request, state] = stages_[stage];
  return failure_.ok() && state == StageState::kHere && (hurries_ || IsAgreed(asked_[request]));
}

bool StagedCourse::IsComplete() const {
  return failure_.ok() && std::all_of(asked_.begin(), asked_.end(), IsOnItsWay) &&
         std::all_of(stages_.begin(), stages_.end(),
                     [](const Stage& stage) { return stage.state == StageState::kAnswered; });
}

bool StagedCourse::HasSubmitted() const {
  if (!failure_.ok()) return true;
  const auto gone = [this](AskedState state) { return IsOnItsWay(state) || engine_has_rest_; };
  const auto submitted = [](const Stage& stage) { return stage.state >= StageState::kSubmitted; };
  return begun_ && std::all_of(asked_.begin(), asked_.end(), gone) &&
         std::all_of(stages_.begin(), stages_.end(), submitted);
}

bool StagedCourse::IsQuiet() const {
  const auto asleep = [](const Stage& stage) { return stage.state != StageState::kSubmitted; };
  return begun_ && owed_ == 0 && std::all_of(asked_.begin(), asked_.end(), IsAnswered) &&
         std::all_of(stages_.begin(), stages_.end(), asleep);
}

bool StagedCourse::MayEnd(Clock::time_point now, absl::FunctionRef<bool()> is_idle) const {
  if (failure_.ok()) return false;
  const bool has_let_go = begun_ && owed_ == 0 && (!lost_ || is_idle());
  return has_let_go || now >= gives_up_at_;
}

}  // namespace hvd::rt
