// SPDX-License-Identifier: Apache-2.0
#include "runtime/api/state/state_home.h"

#include <utility>

namespace hvd {

void StateHome::BeginEpoch(EpochState state) {
  const MutexLock lock(&mutex_);
  epochs_ = StateFiles();
  state_ = std::move(state);
  keeps_own_ = state_.files.empty();
  in_epoch_ = true;
  has_gone_back_ = false;
  // Otherwise what this process has kept goes on.
  if (state_.is_elastic) GoOnFrom(state_.epoch.commit);
}

void StateHome::EndEpoch() {
  const MutexLock lock(&mutex_);
  in_epoch_ = false;
  epochs_ = StateFiles();
  state_.files.clear();
}

absl::StatusOr<StateFiles*> StateHome::Files() {
  StateFiles& files = keeps_own() ? own_ : epochs_;
  if (!files.empty()) return &files;
  auto made = keeps_own() ? StateFiles::MakeOwn() : StateFiles::Take(std::move(state_.files));
  if (!made.ok()) return made.status();
  files = *std::move(made);
  return &files;
}

void StateHome::Hear(const Agreement& agreement) {
  book_.Hear(agreement);
  newest_.store(book_.complete());
}

void StateHome::GoOnFrom(uint64_t number) {
  book_.GoOnFrom(number);
  newest_.store(number);
}

}  // namespace hvd
