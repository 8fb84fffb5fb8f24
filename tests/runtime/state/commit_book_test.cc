// SPDX-License-Identifier: Apache-2.0
// What the ranks' words mean together; and, over all orders of deaths, that a complete commit
// stays.
#include "runtime/state/commit_book.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <memory>
#include <random>
#include <vector>

#include "proto/page/state_box.h"

namespace hvd::rt {
namespace {

Agreement Together(const std::vector<AgreementSide>& sides) {
  AgreementWords all = WordsOf(sides[0]);
  for (const AgreementSide& side : sides) {
    const AgreementWords words = WordsOf(side);
    for (size_t i = 0; i < all.size(); ++i) all[i] = std::max(all[i], words[i]);
  }
  return ReadAgreement(all);
}

TEST_CASE("ranks at the same commit agree, and hear of a change that one has heard of") {
  CHECK(Together({{4, 77, false}, {4, 77, false}}).verdict == AgreementVerdict::kAgreed);
  CHECK(Together({{4, 77, false}, {4, 77, true}}).verdict == AgreementVerdict::kChange);
  CHECK(Together({{kChecks, 0, false}, {kChecks, 0, false}}).verdict == AgreementVerdict::kAgreed);
  CHECK(Together({{kChecks, 0, true}, {kChecks, 0, false}}).verdict == AgreementVerdict::kChange);
}

TEST_CASE("ranks that differ are told how") {
  const auto why = [](const AgreementSide& one, const AgreementSide& other) {
    const Agreement agreed = Together({one, other});
    CHECK(agreed.verdict == AgreementVerdict::kDiffers);
    return agreed.why;
  };
  CHECK(why({4, 77, true}, {4, 78, false}).find("replicated tensors") != std::string::npos);
  CHECK(why({4, 77, false}, {5, 77, true}).find("commit 4, others at 5") != std::string::npos);
  CHECK(why({4, 77, false}, {kChecks, 0, false}).find("hvd_check_hosts") != std::string::npos);
  CHECK(why({4, 77, false}, {kFailed, 0, false}).find("its own error") != std::string::npos);
  CHECK(why({kChecks, 0, false}, {kFailed, 0, false}).find("its own error") != std::string::npos);
}

TEST_CASE("only what all agree on counts") {
  CommitBook book;
  CHECK(book.next() == 1);
  book.Hear({AgreementVerdict::kAgreed, ""}, CommitBy::kProgram);
  book.Hear({AgreementVerdict::kDiffers, "so"}, CommitBy::kProgram);
  CHECK(book.complete() == 1);
  book.Hear({AgreementVerdict::kChange, ""}, CommitBy::kProgram);
  CHECK(book.complete() == 2);
  CHECK(book.steps() == 2);
  book.Hear({AgreementVerdict::kAgreed, ""}, CommitBy::kSync);
  CHECK(book.complete() == 3);
  CHECK(book.steps() == 2);
  book.GoOnFrom(9);
  CHECK(book.next() == 10);
  CHECK(CommitBook::FileOf(9) != CommitBook::FileOf(10));
}

// A host of two ranks, with two files. Ranks write number k in steps, in any order, and the epoch
// may break at any of them; then hvdd looks for the newest complete commit.
TEST_CASE("whenever an epoch breaks, a commit that all have agreed on is found, or the next") {
  std::mt19937 random(3);
  for (int turn = 0; turn < 2000; ++turn) {
    auto heads = std::make_unique<std::array<StateHead, 2>>();
    CommitBook books[2];
    int steps[2] = {0, 0};  // of the commit under way: begun, written, agreed
    for (unsigned moves = random() % 40; moves > 0; --moves) {
      const size_t rank = random() % 2;
      const uint64_t number = books[rank].next();
      StateCell& cell = (*heads)[CommitBook::FileOf(number)].cells[rank];
      if (steps[rank] == 0) BeginState(&cell);
      if (steps[rank] == 1) EndState(&cell, {number, 1, 5, 2});
      if (steps[rank] < 2) ++steps[rank];
      // The agreement comes to each for itself, once both have written.
      const size_t other = 1 - rank;
      const bool both =
          books[other].complete() >= number || (books[other].next() == number && steps[other] == 2);
      if (steps[rank] == 2 && both && random() % 2 == 0) {
        books[rank].Hear({AgreementVerdict::kAgreed, ""}, CommitBy::kProgram);
        steps[rank] = 0;
      }
    }
    uint64_t newest = 0;
    for (const StateHead& head : *heads) newest = std::max(newest, CompleteState(head).number);
    const uint64_t agreed = std::max(books[0].complete(), books[1].complete());
    CHECK(newest >= agreed);
    CHECK(newest <= agreed + 1);
  }
}

}  // namespace
}  // namespace hvd::rt
