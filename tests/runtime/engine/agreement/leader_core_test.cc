// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/agreement/leader_core.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <memory>

#include "tests/support/test_space.h"

namespace hvd::rt {
namespace {

// Hosts of one rank each, and messages between them by hand.
struct TestTree {
  TestTree(int hosts, int fan_out, uint32_t most_ids = 100)
      : topology(std::vector<HostShape>(static_cast<size_t>(hosts), {"h", 1})) {
    for (int h = 0; h < hosts; ++h) {
      pages.push_back(std::make_unique<HostPage>());
      memory.emplace_back(calloc(1, Board::Bytes(1, hosts, 64)), free);
      BoardPlace place;
      place.page = pages.back().get();
      place.memory = memory.back().get();
      place.ranks_here = topology.ranks_of(h);
      place.world_size = hosts;
      place.host = h;
      place.several_hosts = true;
      place.numbers = 64;
      place.space = &space;
      boards.push_back(std::make_unique<Board>(place));
      leaders.push_back(std::make_unique<LeaderCore>(LeaderCoreParts{
          &topology, h, boards.back().get(), fan_out, most_ids, (uint64_t{1} << 32) - 3}));
    }
  }
  // Until nothing moves. Every host sends all it has at once.
  absl::Status Run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int h = static_cast<int>(leaders.size()) - 1; h >= 0; --h) {
        absl::StatusOr<LeaderCore::Outcome> outcome = leaders[h]->Step();
        if (!outcome.ok()) return outcome.status();
        moved = moved || outcome->up || !outcome->down.empty();
        if (outcome->up) {
          absl::Status sent = Send(h, leaders[h]->parent(), *outcome->up);
          if (!sent.ok()) return sent;
        }
        for (const AgreementMessage& message : outcome->down) {
          for (const int child : leaders[h]->children()) {
            if (absl::Status sent = Send(h, child, message); !sent.ok()) return sent;
          }
        }
      }
    }
    return absl::OkStatus();
  }
  absl::Status Send(int from, int to, const AgreementMessage& message) {
    ++sent[from];
    return leaders[to]->OnMessage(from, message);
  }
  LogEntry Next(int host) {
    if (!boards[host]->HasNext()) return {};
    const LogEntry entry = boards[host]->NextBatch().at(0);
    boards[host]->Advance();
    return entry;
  }
  Topology topology;
  std::vector<std::unique_ptr<HostPage>> pages;
  std::vector<std::unique_ptr<void, void (*)(void*)>> memory;
  test::TestSpace space;
  std::vector<std::unique_ptr<Board>> boards;
  std::vector<std::unique_ptr<LeaderCore>> leaders;
  std::map<int, int> sent;
};

Signature Sum(int64_t n) {
  Signature s;
  s.kind = RequestKind::kAllreduce;
  s.dtype = HVD_FLOAT32;
  s.op = HVD_SUM;
  s.ndim = 1;
  s.shape[0] = n;
  return s;
}

TEST_CASE("one message up and one down a host and batch, and none when idle") {
  TestTree tree(7, 2);
  for (int step = 0; step < 3; ++step) {
    tree.sent.clear();
    for (const char* name : {"x", "y", "z"}) {
      for (auto& board : tree.boards) REQUIRE(board->Mark(name, {Sum(4)}).ok());
    }
    REQUIRE(tree.Run().ok());
    CHECK(tree.sent[0] == 2);
    CHECK(tree.sent[1] == 3);  // up, and to both children
    CHECK(tree.sent[6] == 1);
    for (auto& board : tree.boards) {
      REQUIRE(board->HasNext());
      CHECK(board->NextBatch().size() == 3);
      board->Advance();
    }
  }
  tree.sent.clear();
  REQUIRE(tree.Run().ok());
  CHECK(tree.sent.empty());
}

TEST_CASE("a mismatch between hosts has the same text on all, with both descriptions and ranks") {
  TestTree tree(5, 2);
  for (const bool known : {false, true}) {
    if (known) {
      for (auto& board : tree.boards) REQUIRE(board->Mark("x", {Sum(4)}).ok());
      REQUIRE(tree.Run().ok());
      for (int h = 0; h < 5; ++h) CHECK(tree.Next(h).error.empty());
    }
    for (int h = 0; h < 5; ++h) REQUIRE(tree.boards[h]->Mark("x", {Sum(h == 4 ? 5 : 4)}).ok());
    REQUIRE(tree.Run().ok());
    const std::string error = tree.Next(0).error;
    CHECK(error.find("asked for allreduce float32 [4] sum") != std::string::npos);
    CHECK(error.find("rank 4 for allreduce float32 [5] sum") != std::string::npos);
    for (int h = 1; h < 5; ++h) CHECK(tree.Next(h).error == error);
  }
}

TEST_CASE("an allgather's rows come by rank from all hosts") {
  TestTree tree(5, 2);
  for (int h = 0; h < 5; ++h) {
    Signature gather = Sum(10 + h);
    gather.kind = RequestKind::kAllgather;
    REQUIRE(tree.boards[h]->Mark("g", {gather}).ok());
  }
  REQUIRE(tree.Run().ok());
  for (int h = 0; h < 5; ++h) CHECK(tree.Next(h).rows == std::vector<int64_t>{10, 11, 12, 13, 14});
}

TEST_CASE("hosts whose ranks have all joined take part, and the last one to join is known") {
  TestTree tree(5, 2);
  for (const int h : {1, 3, 4}) REQUIRE(tree.boards[h]->Join().ok());
  for (const int h : {0, 2}) REQUIRE(tree.boards[h]->Mark("x", {Sum(4)}).ok());
  REQUIRE(tree.Run().ok());
  for (int h = 0; h < 5; ++h) {
    const LogEntry entry = tree.Next(h);
    CHECK(entry.signature.shape[0] == 4);
    CHECK(entry.contributors == 2);
  }
  REQUIRE(tree.boards[2]->Join().ok());
  REQUIRE(tree.Run().ok());
  CHECK_FALSE(tree.boards[1]->HasNext());
  REQUIRE(tree.boards[0]->Join().ok());
  REQUIRE(tree.Run().ok());
  for (int h = 0; h < 5; ++h) {
    const LogEntry entry = tree.Next(h);
    CHECK(entry.signature.kind == RequestKind::kJoin);
    CHECK(entry.result == 0);
  }
  for (const int h : {0, 1, 2, 3}) REQUIRE(tree.boards[h]->Mark("x", {Sum(4)}).ok());
  REQUIRE(tree.Run().ok());
  CHECK_FALSE(tree.boards[0]->HasNext());
}

TEST_CASE("a rank that has left and is waited for ends the epoch with its name, wherever it was") {
  TestTree tree(7, 2);
  Signature leave;
  leave.kind = RequestKind::kLeave;
  REQUIRE(tree.boards[5]->Mark("before", {Sum(4)}).ok());
  REQUIRE(tree.boards[5]->Mark("leave", {leave}).ok());
  REQUIRE(tree.boards[5]->NoteLeft().ok());
  REQUIRE(tree.Run().ok());
  for (const int h : {0, 1, 2, 3, 4, 6}) REQUIRE(tree.boards[h]->Mark("before", {Sum(4)}).ok());
  REQUIRE(tree.Run().ok());
  CHECK(tree.Next(3).error.empty());
  REQUIRE(tree.boards[3]->Mark("x", {Sum(4)}).ok());
  REQUIRE(tree.Run().ok());  // nobody waits for it above host 1, which lacks its own rank
  for (const int h : {1, 4}) {
    (void)tree.Next(h);
    REQUIRE(tree.boards[h]->Mark("x", {Sum(4)}).ok());
  }
  const absl::Status ended = tree.Run();
  CHECK(absl::IsAborted(ended));
  CHECK(std::string(ended.message()).find("rank 5 has left the job") == 0);
  CHECK(std::string(ended.message()).find("'x'") != std::string::npos);
  const auto& told = std::find_if(tree.pages.begin(), tree.pages.end(),
                                  [](const auto& page) { return page->aborted.load() != 0; });
  REQUIRE(told != tree.pages.end());
  CHECK(CauseOf(**told).rank == 5);
}

// Host 5's answer waits at host 2, which lacks its own, when the root hears that 5 has left.
TEST_CASE("what a rank that has left has answered counts, also where it waits halfway") {
  TestTree tree(7, 2);
  Signature leave;
  leave.kind = RequestKind::kLeave;
  REQUIRE(tree.boards[5]->Mark("x", {Sum(4)}).ok());
  const bool with_the_answer = GENERATE(true, false);
  if (!with_the_answer) REQUIRE(tree.Run().ok());
  REQUIRE(tree.boards[5]->Mark("leave", {leave}).ok());
  REQUIRE(tree.boards[5]->NoteLeft().ok());
  REQUIRE(tree.Run().ok());
  REQUIRE(tree.boards[0]->Mark("x", {Sum(4)}).ok());
  REQUIRE(tree.Run().ok());
  for (const int h : {1, 2, 3, 4, 6}) REQUIRE(tree.boards[h]->Mark("x", {Sum(4)}).ok());
  REQUIRE(tree.Run().ok());
  for (int h = 0; h < 7; ++h) CHECK(tree.Next(h).signature.shape[0] == 4);
}

// Host 1 leaves while its last tensor is decided, and hears of that late or has not executed it.
TEST_CASE("a rank that leaves does not answer again what was decided meanwhile") {
  const bool hears_late = GENERATE(true, false);
  TestTree tree(3, 2);
  Signature leave;
  leave.kind = RequestKind::kLeave;
  for (auto& board : tree.boards) REQUIRE(board->Mark("x", {Sum(4)}).ok());
  for (const int h : {1, 2}) REQUIRE(tree.Send(h, 0, *tree.leaders[h]->Step()->up).ok());
  const AgreementMessage decision = tree.leaders[0]->Step()->down.at(0);
  REQUIRE(tree.Send(0, 2, decision).ok());
  if (!hears_late) REQUIRE(tree.Send(0, 1, decision).ok());
  if (!hears_late) REQUIRE(tree.leaders[1]->Step()->appended);
  REQUIRE(tree.boards[1]->Mark("leave", {leave}).ok());
  REQUIRE(tree.boards[1]->NoteLeft().ok());
  REQUIRE(tree.Send(1, 0, *tree.leaders[1]->Step()->up).ok());
  if (hears_late) REQUIRE(tree.Send(0, 1, decision).ok());
  REQUIRE(tree.Run().ok());
  for (const int h : {0, 1, 2}) CHECK(tree.Next(h).signature.shape[0] == 4);
  REQUIRE(tree.boards[2]->Mark("x", {Sum(4)}).ok());
  const absl::Status ended = tree.Run();
  CHECK(std::string(ended.message()).find("rank 1 has left the job") == 0);
}

TEST_CASE("the root forgets names that are not used any more, and all others with it") {
  TestTree tree(4, 2, 8);
  for (int i = 0; i < 200; ++i) {
    const std::string name = "n" + std::to_string(i);
    for (const std::string& each : {name, std::string("kept")}) {
      for (auto& board : tree.boards) REQUIRE(board->Mark(each, {Sum(i)}).ok());
      REQUIRE(tree.Run().ok());
      for (int h = 0; h < 4; ++h) CHECK(tree.Next(h).signature.shape[0] == i);
    }
  }
  for (auto& leader : tree.leaders) CHECK(leader->known_ids() <= 12);
}

TEST_CASE("messages that fit nothing end the epoch instead of the process") {
  TestTree tree(3, 2);
  AgreementMessage message;
  message.same_ids = {99};
  CHECK(absl::IsInternal(tree.leaders[0]->OnMessage(1, message)));
  CHECK(absl::IsInternal(tree.leaders[0]->OnMessage(7, message)));
  AgreementMessage decision;
  decision.decisions.emplace_back().id = 12;
  CHECK(absl::IsInternal(tree.leaders[1]->OnMessage(0, decision)));
  AgreementMessage rows;
  UpReport report;
  report.name = "x";
  report.report.rows = {0, 1, 2};
  rows.reports.push_back(report);
  CHECK(absl::IsInternal(tree.leaders[0]->OnMessage(1, rows)));
}

std::string CrowdName(int i) { return "n" + std::to_string(i); }

TEST_CASE("tensors pending in opposite orders are not retired, and forgotten when they rest") {
  constexpr int kTensors = 500, kIds = 8;
  TestTree tree(7, 2, kIds);
  for (int step = 0; step < 2; ++step) {
    for (int i = 0; i < kTensors; ++i) {
      for (int h = 0; h < 7; ++h) {
        const int n = h % 2 == 0 ? i : kTensors - 1 - i;
        REQUIRE(tree.boards[h]->Mark(CrowdName(n), {Sum(n)}).ok());
      }
      if (i % 50 == 0) REQUIRE(tree.Run().ok());
    }
    REQUIRE(tree.Run().ok());
    for (int h = 0; h < 7; ++h) {
      int done = 0;
      for (; tree.boards[h]->HasNext(); tree.boards[h]->Advance()) {
        for (const LogEntry& entry : tree.boards[h]->NextBatch()) {
          CHECK(tree.boards[h]->Name(entry.number) ==
                CrowdName(static_cast<int>(entry.signature.shape[0])));
          ++done;
        }
      }
      CHECK(done == kTensors);
    }
  }
  for (int step = 0; step < kTensors; ++step) {
    for (auto& board : tree.boards) REQUIRE(board->Mark("x", {Sum(4)}).ok());
    REQUIRE(tree.Run().ok());
    for (int h = 0; h < 7; ++h) CHECK(tree.Next(h).signature.shape[0] == 4);
  }
  for (int h = 0; h < 7; ++h) CHECK(tree.leaders[h]->known_ids() <= kIds);
}

TEST_CASE("the root remembers as many tensors as its board has numbers") {
  TestTree tree(2, 2, 0);
  for (int i = 0; i < 1000; ++i) {
    for (auto& board : tree.boards) REQUIRE(board->Mark(CrowdName(i), {Sum(4)}).ok());
  }
  REQUIRE(tree.Run().ok());
  for (int h = 0; h < 2; ++h) (void)tree.Next(h);
  for (int i = 0; i < 1000; ++i) {
    for (auto& board : tree.boards) REQUIRE(board->Mark(CrowdName(i), {Sum(4)}).ok());
  }
  REQUIRE(tree.Run().ok());
  CHECK(tree.leaders[1]->known_ids() == 1000);
}

TEST_CASE("a rank that leaves with many tensors pending answers all of them") {
  constexpr int kTensors = 3000;
  TestTree tree(7, 2);
  Signature leave;
  leave.kind = RequestKind::kLeave;
  for (int i = 0; i < kTensors; ++i) REQUIRE(tree.boards[5]->Mark(CrowdName(i), {Sum(i)}).ok());
  REQUIRE(tree.boards[5]->Mark("leave", {leave}).ok());
  REQUIRE(tree.boards[5]->NoteLeft().ok());
  REQUIRE(tree.Run().ok());
  for (int h = 0; h < 7; ++h) {
    for (int i = kTensors; h != 5 && i-- > 0;) {
      REQUIRE(tree.boards[h]->Mark(CrowdName(i), {Sum(i)}).ok());
    }
  }
  REQUIRE(tree.Run().ok());
  for (int h = 0; h < 7; ++h) {
    REQUIRE(tree.boards[h]->HasNext());
    CHECK(tree.boards[h]->NextBatch().size() == kTensors);
  }
}

}  // namespace
}  // namespace hvd::rt
