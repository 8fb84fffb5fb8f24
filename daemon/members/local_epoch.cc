// SPDX-License-Identifier: Apache-2.0
#include "daemon/members/local_epoch.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hvd::daemon {

void LocalEpoch::Propose(std::shared_ptr<const EpochPlan> plan) {
  addresses_.resize(plan->slots.size());
  for (int slot = 0; slot < static_cast<int>(stages_.size()); ++slot) {
    if (plan->LocalRankOf(slot) < 0) stages_[slot] = Stage::kAbsent;
  }
  plan_ = std::move(plan);
}

bool LocalEpoch::Move(int slot, Stage from, Stage to) {
  if (stages_[slot] != from) return false;
  stages_[slot] = to;
  return true;
}

bool LocalEpoch::Address(int slot, std::string address) {
  if (!Move(slot, Stage::kJoined, Stage::kAddressed)) return false;
  addresses_[plan_->LocalRankOf(slot)] = std::move(address);
  return true;
}

bool LocalEpoch::Enter(int slot) {
  stages_[slot] = Stage::kJoined;
  return !std::exchange(created_, true);
}

bool LocalEpoch::Leave(int slot) {
  return std::exchange(stages_[slot], Stage::kLeft) == Stage::kRunning;
}

// A member that had not come is missed only where others have.
bool LocalEpoch::Lose(int slot, bool lives) {
  Stage& stage = stages_[slot];
  const bool inside = IsInside(slot) || stage == Stage::kLost;
  if (!inside && (stage != Stage::kOutside || !begun())) return false;
  stage = lives && inside ? Stage::kLost : Stage::kGone;
  return true;
}

bool LocalEpoch::Take(int slot, uint64_t bytes) {
  if (first_to_say_ >= 0) return false;
  first_to_say_ = slot;
  bytes_ = bytes;
  return true;
}

std::string LocalEpoch::Conflict(int slot, uint64_t bytes) const {
  if (bytes == bytes_) return "";
  return absl::StrCat(NameOf(slot), " asks for ", bytes, " bytes of host memory, ",
                      NameOf(first_to_say_), " for ", bytes_,
                      "; all ranks of a host must run with the same HVD settings");
}

bool LocalEpoch::Abort(const std::string& cause) {
  if (aborted()) return false;
  cause_ = cause;
  return true;
}

bool LocalEpoch::TakeQuiet() { return plan_ != nullptr && !std::exchange(quiet_, true); }

bool LocalEpoch::IsInside(int slot) const {
  return IsWaiting(slot) || stages_[slot] == Stage::kRunning;
}

bool LocalEpoch::IsWaiting(int slot) const {
  const Stage stage = stages_[slot];
  return stage == Stage::kJoined || stage == Stage::kAddressed || stage == Stage::kReady;
}

bool LocalEpoch::All(Stage stage) const {
  return std::all_of(stages_.begin(), stages_.end(),
                     [stage](Stage each) { return each == stage || each == Stage::kAbsent; });
}

bool LocalEpoch::Unused() const {
  return std::all_of(stages_.begin(), stages_.end(), [this](Stage stage) {
    return stage == Stage::kLeft || stage == Stage::kGone || stage == Stage::kAbsent ||
           (stage == Stage::kOutside && aborted());
  });
}

std::string LocalEpoch::NameOf(int slot) const {
  return absl::StrCat("rank ", plan_->RankIn(slot));
}

}  // namespace hvd::daemon
