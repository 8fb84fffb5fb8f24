// SPDX-License-Identifier: Apache-2.0
#include "runtime/state/past_epochs.h"

#include <catch2/catch.hpp>

namespace hvd::rt {
namespace {

TEST_CASE("without a driver the first epoch is number 1, and all get rank 0's state") {
  const EpochState state = PastEpochs().Describe({0, 2, 4}, nullptr);
  CHECK_FALSE(state.is_elastic);
  CHECK(state.epoch.number == 1);
  CHECK(state.epoch.rank == 2);
  CHECK(state.epoch.size == 4);
  CHECK(state.epoch.root == 0);
  CHECK(state.epoch.is_new == 1);
  CHECK(state.epoch.survivors == 0);
  CHECK(state.epoch.sync == 1);
  CHECK(state.epoch.needs_state == 1);
  CHECK(state.epoch.rolls_back == 0);
  CHECK(state.needy == std::vector<int>{1, 2, 3});
}

TEST_CASE("rank 0, and a job of one, need no state") {
  CHECK(PastEpochs().Describe({0, 0, 2}, nullptr).epoch.needs_state == 0);
  const EpochState alone = PastEpochs().Describe({0, 0, 1}, nullptr);
  CHECK(alone.epoch.sync == 0);
  CHECK(alone.needy.empty());
}

TEST_CASE("after an epoch all survive, and go back if it broke") {
  PastEpochs past;
  past.NoteBegun();
  past.NoteEnded(true);
  const EpochState state = past.Describe({0, 0, 3}, nullptr);
  CHECK(state.epoch.number == 2);
  CHECK(state.epoch.is_new == 0);
  CHECK(state.epoch.survivors == 3);
  CHECK(state.epoch.rolls_back == 1);
  past.NoteBegun();
  past.NoteEnded(false);
  CHECK(past.Describe({0, 0, 3}, nullptr).epoch.rolls_back == 0);
}

TEST_CASE("a driver's number counts, in a job that is not elastic, too") {
  CHECK(PastEpochs().Describe({7, 0, 3}, nullptr).epoch.number == 7);
}

TEST_CASE("a driver's words about the state are taken as they are") {
  StateWords words;
  words.resume_commit = 12;
  words.root = 1;
  words.needy = {0, 2};
  words.rolls_back = true;
  words.survivors = 1;
  PastEpochs past;
  past.NoteBegun();
  const EpochState state = past.Describe({3, 2, 3}, &words);
  CHECK(state.is_elastic);
  CHECK(state.epoch.number == 3);
  CHECK(state.epoch.commit == 12);
  CHECK(state.epoch.root == 1);
  CHECK(state.epoch.survivors == 1);
  CHECK(state.epoch.rolls_back == 1);
  CHECK(state.epoch.needs_state == 1);
  CHECK(state.needy == words.needy);
  CHECK(past.Describe({3, 1, 3}, &words).epoch.needs_state == 0);
}

}  // namespace
}  // namespace hvd::rt
