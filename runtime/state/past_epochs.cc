// SPDX-License-Identifier: Apache-2.0
#include "runtime/state/past_epochs.h"

#include <algorithm>
#include <utility>

namespace hvd::rt {
namespace {

StateWords WithoutDriver(int size, bool is_first, bool has_broken) {
  StateWords words;
  words.root = 0;
  words.rolls_back = has_broken;
  words.survivors = is_first ? 0 : size;
  for (int rank = 1; rank < size; ++rank) words.needy.push_back(rank);
  return words;
}

}  // namespace

EpochState PastEpochs::Describe(const JoinedAs& shape, const StateWords* driver) const {
  EpochState state;
  state.is_elastic = driver != nullptr;
  StateWords words =
      state.is_elastic ? *driver : WithoutDriver(shape.size, count_ == 0, has_broken_);
  hvd_epoch_t& epoch = state.epoch;
  epoch.number = shape.number != 0 ? shape.number : count_ + 1;
  epoch.commit = words.resume_commit;
  epoch.rank = shape.rank;
  epoch.size = shape.size;
  epoch.survivors = words.survivors;
  epoch.is_new = count_ == 0 ? 1 : 0;
  epoch.sync = words.needy.empty() ? 0 : 1;
  epoch.root = words.root;
  epoch.rolls_back = words.rolls_back ? 1 : 0;
  epoch.needs_state =
      std::binary_search(words.needy.begin(), words.needy.end(), shape.rank) ? 1 : 0;
  state.needy = std::move(words.needy);
  return state;
}

}  // namespace hvd::rt
