// SPDX-License-Identifier: Apache-2.0
#include "proto/page/state_box.h"

#include <memory>

#include "catch2/catch.hpp"

namespace hvd {
namespace {

void Write(StateHead* head, int local_rank, const StateWord& word) {
  BeginState(&head->cells[local_rank]);
  EndState(&head->cells[local_rank], word);
}

TEST_CASE("an empty state file holds no commit") {
  const auto head = std::make_unique<StateHead>();
  CHECK(CompleteState(*head).number == 0);
}

TEST_CASE("a commit is complete when each of its ranks has written it") {
  const auto head = std::make_unique<StateHead>();
  const StateWord word = {7, 2, 99, 3};
  Write(head.get(), 2, word);
  Write(head.get(), 0, word);
  CHECK(CompleteState(*head).number == 0);
  Write(head.get(), 1, word);
  CHECK(CompleteState(*head).number == 7);
  CHECK(CompleteState(*head).layout == 99);
}

TEST_CASE("a commit that is being written over is complete no more") {
  const auto head = std::make_unique<StateHead>();
  for (int rank : {0, 1}) Write(head.get(), rank, {7, 2, 99, 2});
  BeginState(&head->cells[1]);
  CHECK(CompleteState(*head).number == 0);
}

TEST_CASE("the same number of another epoch, layout or size makes no commit") {
  const auto head = std::make_unique<StateHead>();
  Write(head.get(), 0, {7, 2, 99, 2});
  const StateWord other = GENERATE(StateWord{7, 3, 99, 2}, StateWord{7, 2, 98, 2},
                                   StateWord{7, 2, 99, 3}, StateWord{9, 2, 99, 2});
  Write(head.get(), 1, other);
  CHECK(CompleteState(*head).number == 0);
}

TEST_CASE("cells of a larger host of old do not count") {
  const auto head = std::make_unique<StateHead>();
  for (int rank : {0, 1, 2}) Write(head.get(), rank, {5, 1, 99, 3});
  for (int rank : {0, 1}) Write(head.get(), rank, {7, 2, 99, 2});
  CHECK(CompleteState(*head).number == 7);
}

TEST_CASE("a size that no host has is no commit") {
  const auto head = std::make_unique<StateHead>();
  Write(head.get(), 0, {7, 2, 99, kMaxLocalRanks + 1});
  CHECK(CompleteState(*head).number == 0);
}

TEST_CASE("commits beyond the one that all go back to are forgotten") {
  const auto head = std::make_unique<StateHead>();
  for (int rank : {0, 1}) Write(head.get(), rank, {7, 2, 99, 2});
  VoidStateBeyond(head.get(), 7);
  CHECK(CompleteState(*head).number == 7);
  VoidStateBeyond(head.get(), 6);
  CHECK(CompleteState(*head).number == 0);
}

}  // namespace
}  // namespace hvd
