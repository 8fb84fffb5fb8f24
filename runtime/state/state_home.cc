// SPDX-License-Identifier: Apache-2.0
#include "runtime/state/state_home.h"

#include <utility>

namespace hvd::rt {

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

void StateHome::Hear(const Agreement& agreement, CommitBy by) {
  book_.Hear(agreement, by);
  newest_.store(book_.complete());
}

// Survivors that have gone back remember what came later.
uint64_t StateHome::Steps() {
  const uint64_t newest = book_.complete();
  const absl::StatusOr<StateFiles*> files = Files();
  if (newest == 0 || !files.ok()) return newest == 0 ? 0 : book_.steps();
  StateFile& file = *(*files)->host[CommitBook::FileOf(newest)];
  const absl::StatusOr<uint64_t> bytes = file.MapFirst(kStateContentsAt);
  if (!bytes.ok() || *bytes < kStateContentsAt) return book_.steps();
  const StateWord word = CompleteState(*file.head());
  if (word.number == newest) book_.Learn(word.steps);
  return book_.steps();
}

void StateHome::GoOnFrom(uint64_t number) {
  book_.GoOnFrom(number);
  newest_.store(number);
}

}  // namespace hvd::rt
