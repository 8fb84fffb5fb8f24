// SPDX-License-Identifier: Apache-2.0
// As many names as a board is given: it grows, up to its limit.
#include <algorithm>
#include <catch2/catch.hpp>
#include <new>
#include <set>
#include <thread>

#include "tests/runtime/engine/agreement/test_board.h"

namespace hvd::rt {
namespace {

using test::ExecuteAll;
using test::Sum;
using test::TestBoard;

std::string NameOf(int i) { return "n" + std::to_string(i); }

TEST_CASE("names pending in opposite orders all complete, however many") {
  constexpr int kNames = 3000;
  TestBoard board(2, {.numbers = 8});
  for (int step = 0; step < 3; ++step) {
    for (int i = 0; i < kNames; ++i) {
      REQUIRE(board.ranks[0]->Mark(NameOf(i), {Sum(i)}).ok());
      // Some come to their end meanwhile.
      if (i % 10 == 0) REQUIRE(board.ranks[1]->Mark(NameOf(i), {Sum(i)}).ok());
      if (i % 500 == 0) CHECK_FALSE(ExecuteAll(&board).empty());
    }
    for (int i = kNames; i-- > 0;) {
      if (i % 10 != 0) REQUIRE(board.ranks[1]->Mark(NameOf(i), {Sum(i)}).ok());
    }
    const std::vector<LogEntry> batch = ExecuteAll(&board);
    CHECK(batch.size() > kNames * 9 / 10);
    std::set<int64_t> sizes;
    for (const LogEntry& entry : batch) {
      CHECK(entry.error.empty());
      CHECK(board.ranks[1]->Name(entry.number) ==
            NameOf(static_cast<int>(entry.signature.shape[0])));
      sizes.insert(entry.signature.shape[0]);
    }
    CHECK(sizes.size() == batch.size());
    if (step == 0) CHECK(board.ranks[0]->leader_side().numbers() == 4096);
  }
  CHECK(board.ranks[0]->leader_side().numbers() == 4096);  // what is idle is used again
}

TEST_CASE("a rank that has hardly looked finds all that others have put in the log meanwhile") {
  TestBoard board(3, {.numbers = 4});
  REQUIRE(board.ranks[2]->Join().ok());
  for (int i = 0; i < 200; ++i) {
    for (int r = 0; r < 2; ++r) REQUIRE(board.ranks[r]->Mark(NameOf(i), {Sum(i)}).ok());
    board.ranks[i % 2]->Close();
  }
  CHECK(board.ranks[2]->leader_side().numbers() < 200);
  for (int i = 0; i < 200; ++i) {
    REQUIRE(board.ranks[2]->HasNext());
    for (const LogEntry& entry : board.ranks[2]->NextBatch()) {
      CHECK(entry.signature.shape[0] == i);
      CHECK(entry.contributors == 2);
    }
    board.ranks[2]->Advance();
  }
  CHECK_FALSE(board.ranks[2]->HasNext());
}

TEST_CASE("with several hosts all that completes is reported in its order, however much") {
  TestBoard board(2, {.several_hosts = true, .numbers = 4});
  for (int i = 0; i < 100; ++i) REQUIRE(board.ranks[1]->Mark(NameOf(i), {Sum(i)}).ok());
  for (int i = 100; i-- > 0;) REQUIRE(board.ranks[0]->Mark(NameOf(i), {Sum(i)}).ok());
  std::vector<LogEntry> batch;
  for (int i = 100; i-- > 0;) {
    const auto out = board.ranks[0]->leader_side().TakeOutbox();
    REQUIRE(out.has_value());
    CHECK(board.ranks[0]->Name(out->number) == NameOf(i));
    LogEntry& entry = batch.emplace_back();
    entry.number = out->number;
    entry.signature = out->report.first.signature;
  }
  CHECK_FALSE(board.ranks[0]->leader_side().HasOutbox());
  board.ranks[0]->leader_side().Append(batch);
  CHECK(board.ranks[1]->NextBatch().size() == 100);
}

TEST_CASE("a name beyond the limit ends the epoch for all, and says which limit") {
  TestBoard board(2, {.numbers = 4, .most_pending = 20});
  const auto mark = [&](const std::string& name) { return board.ranks[0]->Mark(name, {Sum(1)}); };
  REQUIRE(board.ranks[0]->Keep("kept").ok());  // has its place beside them
  for (int i = 0; i < 20; ++i) REQUIRE(mark(NameOf(i)).ok());
  REQUIRE(mark("\x01leave").ok());
  REQUIRE(mark("kept").ok());
  const bool keeps = GENERATE(true, false);
  if (keeps) REQUIRE(board.ranks[0]->Keep("another").ok());
  const absl::Status ended = mark("one more").status();
  CHECK(absl::IsAborted(ended));
  const std::string text(ended.message());
  CHECK(text ==
        "rank 0 has no room for 'one more': more than 20 tensors would be pending at once on its "
        "host (HVD_MAX_PENDING); wait for some of them, or set it higher, the same on all ranks");
  CHECK(CauseOf(*board.page).text == text);
  CHECK(CauseOf(*board.page).rank == 0);
}

TEST_CASE("at the limit names that are idle make room") {
  TestBoard board(2, {.numbers = 4, .most_pending = 20});
  for (int i = 0; i < 200; ++i) {
    for (auto& rank : board.ranks) REQUIRE(rank->Mark(NameOf(i), {Sum(1)}).ok());
    if (i % 20 == 19) CHECK(ExecuteAll(&board).size() == 20);
  }
  CHECK(board.page->aborted.load() == 0);
}

TEST_CASE("a board that cannot grow ends the epoch, and says why") {
  TestBoard board(2, {.numbers = 4});
  bool second = false;
  SECTION("no room in the memory") { board.space.most = 0; }
  SECTION("the rank cannot map it") { board.space.refuses_to_map = true; }
  SECTION("another rank cannot map it") { second = true; }
  absl::Status ended;
  for (int i = 0; i < 5 && ended.ok(); ++i) {
    ended = board.ranks[0]->Mark(NameOf(i), {Sum(1)}).status();
  }
  if (second) {
    REQUIRE(ended.ok());
    board.space.refuses_to_map = true;
    CHECK_FALSE(board.ranks[1]->HasNext());
    CHECK(board.ranks[1]->NextBatch().empty());
    ended = board.ranks[1]->Mark("x", {Sum(1)}).status();
  }
  CHECK(absl::IsAborted(ended));
  const std::string text = CauseOf(*board.page).text;
  CHECK(text.find(second ? "rank 1 cannot have more than 4 tensors pending at once: ulimit -v"
                         : "rank 0 cannot have more than 4 tensors pending at once: ") == 0);
}

TEST_CASE("where there is no memory for a mark the mark is not made") {
  TestBoard board(2);
  bool scarce = true;
  uint32_t heard = 0;
  board.ranks[0]->set_before_mark([&](uint32_t number) {
    if (scarce) throw std::bad_alloc();
    heard = number;
  });
  REQUIRE(board.ranks[1]->Mark("x", {Sum(1)}).ok());
  CHECK_THROWS_AS(board.ranks[0]->Mark("x", {Sum(1)}), std::bad_alloc);
  CHECK_FALSE(board.ranks[0]->HasOpen());
  scarce = false;
  const auto number = board.ranks[0]->Mark("x", {Sum(1)});
  REQUIRE(number.ok());
  CHECK(heard == *number);
  CHECK(ExecuteAll(&board).size() == 1);
}

TEST_CASE("a board gives back what it has grown by") {
  TestBoard board(2, {.numbers = 4});
  for (int i = 0; i < 100; ++i) REQUIRE(board.ranks[0]->Mark(NameOf(i), {Sum(1)}).ok());
  CHECK(board.space.taken() > 0);
  board.ranks[1]->GiveGrown();
  CHECK(board.space.taken() == 0);
}

TEST_CASE("many threads in random orders agree on one order") {
  constexpr int kRanks = 4, kNames = 50, kRounds = 40;
  // It grows while others mark what they know, append and execute; or has no need to.
  TestBoard board(kRanks, {.numbers = GENERATE(2u, 64u)});
  std::vector<std::vector<uint32_t>> orders(kRanks);
  std::vector<std::thread> threads;
  for (int r = 0; r < kRanks; ++r) {
    threads.emplace_back([&, r] {
      Board& mine = *board.ranks[r];
      unsigned random = r * 7919 + 1;
      for (int round = 0; round < kRounds; ++round) {
        std::vector<int> names(kNames);
        for (int i = 0; i < kNames; ++i) names[i] = i;
        for (int i = kNames - 1; i > 0; --i) std::swap(names[i], names[rand_r(&random) % (i + 1)]);
        for (const int n : names) (void)mine.Mark("t" + std::to_string(n), {Sum(n)}).ok();
        for (int done = 0; done < kNames;) {
          if (!mine.HasNext()) mine.Close();
          if (!mine.HasNext()) {
            std::this_thread::yield();
            continue;
          }
          for (const LogEntry& entry : mine.NextBatch()) {
            orders[r].push_back(entry.number);
            ++done;
          }
          orders[r].push_back(0);  // the batch's end
          mine.Advance();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int r = 1; r < kRanks; ++r) CHECK(orders[r] == orders[0]);
  CHECK(orders[0].size() - std::count(orders[0].begin(), orders[0].end(), 0) == kNames * kRounds);
}

}  // namespace
}  // namespace hvd::rt
