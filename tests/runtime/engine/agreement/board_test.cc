// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/agreement/board.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <thread>

#include "tests/runtime/engine/agreement/test_board.h"

namespace hvd::rt {
namespace {

using test::ExecuteAll;
using test::Sum;
using test::TestBoard;

TEST_CASE("an entry is agreed when the last rank has marked it, in the order of completion") {
  TestBoard board(2);
  Board& a = *board.ranks[0];
  Board& b = *board.ranks[1];
  const uint32_t x = *a.Mark("x", {Sum(4)});
  const uint32_t y = *a.Mark("y", {Sum(4)});
  CHECK_FALSE(a.HasNext());
  CHECK(*b.Mark("y", {Sum(4)}) == y);
  CHECK(*b.Mark("x", {Sum(4)}) == x);
  CHECK_FALSE(a.HasNext());
  CHECK(a.HasOpen());
  CHECK(a.open_bytes() == 32);
  b.Close();
  a.Close();  // late: there is nothing left to close
  CHECK_FALSE(a.HasOpen());
  CHECK(a.open_bytes() == 0);
  for (Board* rank : {&a, &b}) {
    REQUIRE(rank->HasNext());
    const std::vector<LogEntry> batch = rank->NextBatch();
    REQUIRE(batch.size() == 2);
    CHECK(batch[0].number == y);
    CHECK(batch[1].number == x);
    CHECK(batch[1].signature.shape[0] == 4);
    CHECK(batch[1].contributors == 2);
    CHECK(batch[1].host_buffers.empty());
    rank->Advance();
    CHECK_FALSE(rank->HasNext());
  }
}

TEST_CASE("what a rank has marked is agreed from the log on until it has executed it") {
  const bool several_hosts = GENERATE(false, true);
  TestBoard board(2, {.several_hosts = several_hosts});
  for (int turn = 0; turn < 3; ++turn) {
    const uint32_t x = *board.ranks[0]->Mark("x", {Sum(4)});
    CHECK_FALSE(board.ranks[0]->IsAgreed(x));
    CHECK(*board.ranks[1]->Mark("x", {Sum(4)}) == x);
    if (several_hosts) {
      CHECK_FALSE(board.ranks[0]->IsAgreed(x));  // other hosts have not said so
      const auto out = board.ranks[0]->leader_side().TakeOutbox();
      REQUIRE(out.has_value());
      LogEntry entry;
      entry.number = out->number;
      entry.signature = out->report.first.signature;
      board.ranks[0]->leader_side().Append({entry});
    }
    for (auto& rank : board.ranks) CHECK(rank->IsAgreed(x));
    board.ranks[0]->Close();
    board.ranks[0]->Advance();
    CHECK_FALSE(board.ranks[0]->IsAgreed(x));
    CHECK(board.ranks[1]->IsAgreed(x));
    board.ranks[1]->Advance();
    CHECK_FALSE(board.ranks[1]->IsAgreed(x));
  }
}

TEST_CASE("a batch has the same end for a rank that reads it late") {
  TestBoard board(2);
  for (const char* name : {"x", "y"}) {
    for (auto& rank : board.ranks) REQUIRE(rank->Mark(name, {Sum(4)}).ok());
    board.ranks[0]->Close();
    board.ranks[0]->Advance();
  }
  CHECK(board.ranks[1]->NextBatch().size() == 1);
  board.ranks[1]->Advance();
  CHECK(board.ranks[1]->NextBatch().size() == 1);
  board.ranks[1]->Advance();
  CHECK_FALSE(board.ranks[1]->HasNext());
}

TEST_CASE("where a tensor lies in the arenas is known when it lies in all of them") {
  TestBoard board(2);
  REQUIRE(board.ranks[0]->Mark("x", {Sum(4), 64, 128}).ok());
  REQUIRE(board.ranks[1]->Mark("x", {Sum(4), 0, 0}).ok());
  REQUIRE(board.ranks[0]->Mark("y", {Sum(4), 64, 128}).ok());
  REQUIRE(board.ranks[1]->Mark("y", {Sum(4), 0, -1}).ok());
  board.ranks[0]->Close();
  board.ranks[0]->Advance();
  // The next run's marks leave this one's alone.
  REQUIRE(board.ranks[0]->Mark("x", {Sum(4), 1024, 1024}).ok());
  const std::vector<LogEntry> batch = board.ranks[1]->NextBatch();
  REQUIRE(batch[0].host_buffers.size() == 2);
  CHECK(batch[0].host_buffers[0].input_at == 64);
  CHECK(batch[0].host_buffers[0].output_at == 128);
  CHECK(batch[0].host_buffers[1].input_at == 0);
  CHECK(batch[1].host_buffers.empty());
}

TEST_CASE("a mismatch is agreed like anything else and the name is usable afterwards") {
  TestBoard board(2);
  Board& a = *board.ranks[0];
  Board& b = *board.ranks[1];
  REQUIRE(a.Mark("x", {Sum(4)}).ok());
  REQUIRE(b.Mark("x", {Sum(5)}).ok());
  a.Close();
  const std::string error = a.NextBatch().at(0).error;
  CHECK(error.find("rank 0 asked for allreduce float32 [4] sum") != std::string::npos);
  CHECK(error == b.NextBatch().at(0).error);
  a.Advance();
  b.Advance();
  REQUIRE(a.Mark("x", {Sum(4)}).ok());
  REQUIRE(b.Mark("x", {Sum(4)}).ok());
  b.Close();
  CHECK(b.NextBatch().at(0).error.empty());
}

TEST_CASE("an allgather's rows come by rank") {
  TestBoard board(3);
  for (int r = 0; r < 3; ++r) {
    Signature s = Sum(r + 5);
    s.kind = RequestKind::kAllgather;
    s.op = 0;
    REQUIRE(board.ranks[r]->Mark("g", {s}).ok());
  }
  board.ranks[2]->Close();
  CHECK(board.ranks[1]->NextBatch().at(0).rows == std::vector<int64_t>{5, 6, 7});
}

TEST_CASE("names beyond the board's length reuse idle entries") {
  TestBoard board(2);
  for (uint32_t i = 0; i < 3 * Board::kNumbers; ++i) {
    const std::string name = "unnamed call " + std::to_string(i);
    for (auto& rank : board.ranks) REQUIRE(rank->Mark(name, {Sum(1)}).ok());
    board.ranks[0]->Close();
    for (auto& rank : board.ranks) rank->Advance();
  }
  REQUIRE_FALSE(board.ranks[0]->HasNext());
  CHECK(board.space.taken() == 0);
}

TEST_CASE("long names are told apart by their ends") {
  TestBoard board(1);
  const std::string stem(3000, 'n');
  const uint32_t a = *board.ranks[0]->Mark(stem + "a", {Sum(1)});
  CHECK(*board.ranks[0]->Mark(stem + "b", {Sum(1)}) != a);
}

TEST_CASE("a rank that has left ends the epoch for those who wait for it") {
  TestBoard board(2);
  Signature leave;
  leave.kind = RequestKind::kLeave;
  SECTION("already waiting") {
    REQUIRE(board.ranks[0]->Mark("x", {Sum(1)}).ok());
    REQUIRE(board.ranks[1]->Mark("leave", {leave}).ok());
    CHECK(absl::IsAborted(board.ranks[1]->NoteLeft()));
  }
  SECTION("waiting later") {
    REQUIRE(board.ranks[1]->Mark("leave", {leave}).ok());
    REQUIRE(board.ranks[1]->NoteLeft().ok());
    CHECK(absl::IsAborted(board.ranks[0]->Mark("x", {Sum(1)}).status()));
  }
  CHECK(std::string(CauseOf(*board.page).text).find("rank 1 has left the job") == 0);
  CHECK(std::string(CauseOf(*board.page).text).find("'x'") != std::string::npos);
  CHECK(CauseOf(*board.page).rank == 1);
}

TEST_CASE("an abort beside others that are never completed says its own words") {
  TestBoard board(2);
  board.page->abort_notes_taken = 1;
  SECTION("and there is a note left for them") {
    CHECK(board.ranks[0]->Abort({"mine", 0}).message() == "mine");
    CHECK(std::string(CauseOf(*board.page).text) == "mine");
  }
  SECTION("and there is none") {
    board.page->abort_notes_taken = kAbortNotes - 1;
    CHECK(board.ranks[0]->Abort({"mine", 0}).message() == "mine");
    AbortEpochAsDaemon(board.page.get(), {"the daemon's"}, nullptr);
    CHECK(board.ranks[0]->Abort({"mine", 0}).message() == "the daemon's");
  }
}

TEST_CASE("a lock whose holder died is no trap: the abort frees those who spin") {
  TestBoard board(2);
  *reinterpret_cast<std::atomic<uint32_t>*>(board.memory) = 1;  // the header begins with the lock
  std::thread rank([&] { CHECK(absl::IsAborted(board.ranks[0]->Mark("x", {Sum(1)}).status())); });
  AbortEpoch(board.page.get(), "rank 1 was killed", nullptr);
  rank.join();
}

TEST_CASE(
    "with several hosts a completed entry goes to the outbox, and the leader's append runs it") {
  TestBoard board(2, {.several_hosts = true});
  for (auto& rank : board.ranks) REQUIRE(rank->Mark("x", {Sum(4)}).ok());
  CHECK_FALSE(board.ranks[0]->HasNext());
  const auto out = board.ranks[0]->leader_side().TakeOutbox();
  REQUIRE(out.has_value());
  CHECK(board.ranks[0]->Name(out->number) == "x");
  CHECK(out->report.contributors == 2);
  CHECK(out->report.first.signature.shape[0] == 4);
  CHECK_FALSE(board.ranks[0]->leader_side().TakeOutbox().has_value());
  LogEntry entry;
  entry.number = out->number;
  entry.signature = out->report.first.signature;
  board.ranks[0]->leader_side().Append({entry});
  REQUIRE(board.ranks[1]->HasNext());
  CHECK(board.ranks[1]->NextBatch().at(0).number == out->number);
}

TEST_CASE("a known name with a new shape is agreed when all change it, else it is a mismatch") {
  TestBoard board(2);
  const auto run = [&board](int64_t a, int64_t b) {
    REQUIRE(board.ranks[0]->Mark("x", {Sum(a)}).ok());
    REQUIRE(board.ranks[1]->Mark("x", {Sum(b)}).ok());
    return ExecuteAll(&board).at(0);
  };
  for (int i = 0; i < 3; ++i) CHECK(run(4, 4).signature.shape[0] == 4);
  CHECK(run(5, 5).signature.shape[0] == 5);
  CHECK(run(5, 5).signature.shape[0] == 5);
  CHECK(run(5, 6).error.find("rank 1 for allreduce float32 [6] sum") != std::string::npos);
  CHECK(run(6, 5).error.find("rank 0 asked for allreduce float32 [6] sum") != std::string::npos);
  CHECK(run(7, 8).error.find("[7] sum, rank 1 for allreduce float32 [8]") != std::string::npos);
  CHECK(run(5, 5).error.empty());
}

TEST_CASE("a rank that has left still answers what it has submitted before") {
  TestBoard board(3);
  Signature leave;
  leave.kind = RequestKind::kLeave;
  REQUIRE(board.ranks[1]->Mark("x", {Sum(1)}).ok());
  REQUIRE(board.ranks[1]->Mark("leave", {leave}).ok());
  REQUIRE(board.ranks[1]->NoteLeft().ok());
  REQUIRE(board.ranks[0]->Mark("x", {Sum(1)}).ok());
  REQUIRE(board.ranks[2]->Mark("x", {Sum(1)}).ok());
  CHECK(ExecuteAll(&board).size() == 1);
  CHECK(absl::IsAborted(board.ranks[0]->Mark("x", {Sum(1)}).status()));
}

// Rank 1 leaves.
void Leave(TestBoard* board, absl::Span<const std::string_view> owed = {}) {
  Signature leave;
  leave.kind = RequestKind::kLeave;
  REQUIRE(board->ranks[1]->Mark("leave", {leave}).ok());
  REQUIRE(board->ranks[1]->NoteLeft(owed).ok());
}

TEST_CASE("a rank that has left and executes late ends the epoch for those who ask again") {
  TestBoard board(2);
  REQUIRE(board.ranks[1]->Mark("x", {Sum(1)}).ok());
  Leave(&board);
  REQUIRE(board.ranks[0]->Mark("x", {Sum(1)}).ok());
  board.ranks[0]->Close();
  board.ranks[0]->Advance();
  REQUIRE(board.ranks[0]->Mark("x", {Sum(1)}).ok());
  CHECK(board.page->aborted.load() == 0);
  board.ranks[1]->Advance();
  CHECK(board.page->aborted.load() != 0);
  CHECK(std::string(CauseOf(*board.page).text).find("rank 1 has left the job") == 0);
}

TEST_CASE("a rank that has left answers what it owes, as often as it does") {
  TestBoard board(2);
  const std::vector<std::string_view> owed = {"x", "x"};
  REQUIRE(board.ranks[1]->Keep("x").ok());
  bool marks = false;
  SECTION("marked") { marks = true; }
  SECTION("given up") {}
  Leave(&board, owed);
  for (int i = 0; i < 2; ++i) {
    REQUIRE(board.ranks[0]->Mark("x", {Sum(1)}).ok());
    if (i == 1 && !marks) break;
    REQUIRE(board.ranks[1]->Mark("x", {Sum(1)}).ok());
    CHECK(ExecuteAll(&board).size() == 1);
  }
  CHECK(board.page->aborted.load() == 0);
  if (!marks) board.ranks[1]->GiveUp("x");
  if (marks) CHECK(absl::IsAborted(board.ranks[0]->Mark("x", {Sum(1)}).status()));
  CHECK(std::string(CauseOf(*board.page).text).find("rank 1 has left the job") == 0);
}

// A measurement, which a noisy machine would fail: asked for by its tag.
TEST_CASE("what a mark of a known tensor costs", "[.cost]") {
  TestBoard board(2);
  std::vector<std::string> names;
  for (int i = 0; i < 161; ++i) names.push_back("layer" + std::to_string(i) + ".weight.gradient");
  std::vector<double> costs;
  for (int step = 0; step < 200; ++step) {
    const auto start = std::chrono::steady_clock::now();
    for (const std::string& name : names) (void)board.ranks[0]->Mark(name, {Sum(1000)}).ok();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    costs.push_back(took.count() / static_cast<double>(names.size()));
    for (const std::string& name : names) (void)board.ranks[1]->Mark(name, {Sum(1000)}).ok();
    REQUIRE(ExecuteAll(&board).size() == names.size());
  }
  std::sort(costs.begin(), costs.end());
  WARN("a mark takes " << costs[costs.size() / 2] << " ns");
  CHECK(costs[costs.size() / 2] < 400);
}

}  // namespace
}  // namespace hvd::rt
