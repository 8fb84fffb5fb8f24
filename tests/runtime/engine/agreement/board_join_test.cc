// SPDX-License-Identifier: Apache-2.0
// Ranks that have joined, on the board.
#include <catch2/catch.hpp>

#include "tests/runtime/engine/agreement/test_board.h"

namespace hvd::rt {
namespace {

using test::ExecuteAll;
using test::Sum;
using test::TestBoard;

using Names = std::vector<std::string_view>;

TEST_CASE("ranks that have joined take part in what the others ask for, until all have") {
  TestBoard board(3);
  REQUIRE(board.ranks[1]->Mark("before", {Sum(4)}).ok());
  REQUIRE(board.ranks[1]->Join().ok());
  CHECK(absl::IsFailedPrecondition(board.ranks[1]->Mark("y", {Sum(4)}).status()));
  CHECK(absl::IsFailedPrecondition(board.ranks[1]->Join().status()));
  for (const char* name : {"x", "before", "x"}) {
    REQUIRE(board.ranks[0]->Mark(name, {Sum(4)}).ok());
    REQUIRE(board.ranks[2]->Mark(name, {Sum(4)}).ok());
    const std::vector<LogEntry> seen = ExecuteAll(&board);
    REQUIRE(seen.size() == 1);
    CHECK(seen[0].error.empty());
    CHECK(seen[0].contributors == (std::string(name) == "before" ? 3 : 2));
    CHECK(seen[0].signature.shape[0] == 4);
  }
  REQUIRE(board.ranks[2]->Mark("z", {Sum(9)}).ok());
  REQUIRE(board.ranks[2]->Join().ok());
  CHECK(ExecuteAll(&board).empty());
  REQUIRE(board.ranks[0]->Join().ok());
  const std::vector<LogEntry> seen = ExecuteAll(&board);
  REQUIRE(seen.size() == 2);
  CHECK(seen[0].signature.shape[0] == 9);
  CHECK(seen[0].contributors == 1);
  CHECK(seen[1].signature.kind == RequestKind::kJoin);
  CHECK(seen[1].result == 0);
  // The next round starts clean: nobody is ready by himself any more.
  REQUIRE(board.ranks[0]->Mark("x", {Sum(4)}).ok());
  REQUIRE(board.ranks[1]->Mark("x", {Sum(4)}).ok());
  CHECK_FALSE(board.ranks[0]->HasOpen());
  REQUIRE(board.ranks[2]->Mark("x", {Sum(4)}).ok());
  CHECK(ExecuteAll(&board).at(0).contributors == 3);
}

TEST_CASE("an allgather has no rows of a rank that has joined; a broadcast says which rank it is") {
  TestBoard board(3);
  REQUIRE(board.ranks[1]->Join().ok());
  for (const RequestKind kind : {RequestKind::kAllgather, RequestKind::kBroadcast}) {
    for (const int r : {0, 2}) {
      Signature signature = Sum(4 + (kind == RequestKind::kAllgather ? r : 0));
      signature.kind = kind;
      REQUIRE(board.ranks[r]->Mark("g", {signature}).ok());
    }
    const LogEntry entry = ExecuteAll(&board).at(0);
    if (kind == RequestKind::kAllgather) {
      CHECK(entry.rows == std::vector<int64_t>{4, 0, 6});
      continue;
    }
    CHECK(entry.error.find("rank 1 among them") != std::string::npos);
    CHECK(entry.error.find("1 of 3 ranks have joined") != std::string::npos);
    CHECK(entry.error.find("asked for broadcast") != std::string::npos);
  }
}

TEST_CASE("a leave does not go on beside a rank that has joined, which has not asked for it") {
  TestBoard board(3);
  REQUIRE(board.ranks[1]->Join().ok());
  Signature leave;
  leave.kind = RequestKind::kLeave;
  for (const int r : {0, 2}) REQUIRE(board.ranks[r]->Mark("leave", {leave}).ok());
  const LogEntry entry = ExecuteAll(&board).at(0);
  CHECK(entry.contributors == 2);
  CHECK(entry.error.find("rank 1 among them") != std::string::npos);
}

// Ranks 1 and 2 ask for it; what comes of that.
std::vector<LogEntry> AskTheRest(TestBoard* board, const char* name) {
  for (const int r : {1, 2}) REQUIRE(board->ranks[r]->Mark(name, {Sum(4)}).ok());
  return ExecuteAll(board);
}

TEST_CASE("a rank that has joined is ready for all but what it owes, until it marks that or not") {
  TestBoard board(3);
  Board& joined = *board.ranks[0];
  for (const char* name : {"x", "y"}) REQUIRE(joined.Keep(name).ok());
  REQUIRE(joined.Join(Names{"x", "y"}).ok());
  CHECK(AskTheRest(&board, "other").at(0).contributors == 2);
  CHECK(absl::IsFailedPrecondition(joined.Mark("other", {Sum(4)}).status()));
  CHECK(AskTheRest(&board, "x").empty());
  CHECK(AskTheRest(&board, "y").empty());
  REQUIRE(joined.Mark("x", {Sum(4)}).ok());
  CHECK(absl::IsFailedPrecondition(joined.Mark("x", {Sum(4)}).status()));
  CHECK(ExecuteAll(&board).at(0).contributors == 3);
  joined.GiveUp("y");
  CHECK(ExecuteAll(&board).at(0).contributors == 2);
  CHECK(AskTheRest(&board, "x").at(0).contributors == 2);
  CHECK(AskTheRest(&board, "y").at(0).contributors == 2);
  for (const int r : {1, 2}) REQUIRE(board.ranks[r]->Join().ok());
  CHECK(ExecuteAll(&board).at(0).signature.kind == RequestKind::kJoin);
}

TEST_CASE("what is owed more than once is marked as often, also when it is outstanding already") {
  TestBoard board(3);
  Board& joined = *board.ranks[0];
  REQUIRE(joined.Keep("x").ok());
  REQUIRE(joined.Mark("x", {Sum(4)}).ok());
  REQUIRE(joined.Join(Names{"x", "x"}).ok());
  CHECK(AskTheRest(&board, "x").at(0).contributors == 3);
  for (int i = 0; i < 2; ++i) {
    CHECK(AskTheRest(&board, "x").empty());
    REQUIRE(joined.Mark("x", {Sum(4)}).ok());
    CHECK(ExecuteAll(&board).at(0).contributors == 3);
  }
  CHECK(AskTheRest(&board, "x").at(0).contributors == 2);
}

TEST_CASE("a join waits for what is owed, and comes after it") {
  TestBoard board(2);
  for (auto& rank : board.ranks) {
    REQUIRE(rank->Keep("x").ok());
    REQUIRE(rank->Join(Names{"x"}).ok());
  }
  CHECK(ExecuteAll(&board).empty());
  SECTION("marked") {
    REQUIRE(board.ranks[0]->Mark("x", {Sum(4)}).ok());
    CHECK(ExecuteAll(&board).empty());
    bool marks = false;
    SECTION("by both") { marks = true; }
    SECTION("by one") {}
    if (marks) REQUIRE(board.ranks[1]->Mark("x", {Sum(4)}).ok());
    if (!marks) board.ranks[1]->GiveUp("x");
    const std::vector<LogEntry> seen = ExecuteAll(&board);
    REQUIRE(seen.size() == 2);
    CHECK(seen[0].contributors == (marks ? 2 : 1));
    CHECK(seen[1].signature.kind == RequestKind::kJoin);
  }
  SECTION("given up") {
    for (auto& rank : board.ranks) rank->GiveUp("x");
    CHECK(ExecuteAll(&board).at(0).signature.kind == RequestKind::kJoin);
  }
  for (auto& rank : board.ranks) REQUIRE(rank->Mark("x", {Sum(4)}).ok());
  CHECK(ExecuteAll(&board).at(0).contributors == 2);
}

}  // namespace
}  // namespace hvd::rt
