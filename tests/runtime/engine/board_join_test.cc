// Ranks that have joined, on the board.
#include <catch2/catch.hpp>

#include "tests/runtime/engine/test_board.h"

namespace hvd {
namespace {

using test::ExecuteAll;
using test::Sum;
using test::TestBoard;

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

}  // namespace
}  // namespace hvd
