// SPDX-License-Identifier: Apache-2.0
#include "daemon/relay/output_queue.h"

#include <catch2/catch.hpp>
#include <thread>

namespace hvd::daemon {
namespace {

// Takes and acknowledges until stream 0 has ended.
std::string TakeAll(OutputQueue* queue, uint64_t* skipped) {
  std::string all;
  uint64_t total = 0;
  OutputPiece piece;
  while (queue->Take(&piece)) {
    all += piece.data;
    if (piece.skipped_lines != 0) all += "<" + std::to_string(piece.skipped_lines) + ">";
    *skipped += piece.skipped_lines;
    queue->Acked(total += piece.data.size());
    if (piece.end) break;
  }
  return all;
}

TEST_CASE("what is pushed comes out in order, then the end") {
  OutputQueue queue;
  queue.Begin(2, [](int) {});
  std::string sent;
  for (int i = 0; i < 50000; ++i) sent += std::to_string(i) + "\n";
  queue.Push(0, sent);
  queue.PushEnd(0);
  uint64_t skipped = 0;
  CHECK(TakeAll(&queue, &skipped) == sent);
  CHECK(skipped == 0);
}

TEST_CASE("the end of recording is told behind what was recorded, and once") {
  OutputQueue queue;
  queue.Begin(1, [](int) {});
  queue.Push(0, "frames");
  queue.EndRecording(0);
  queue.Push(0, "more");
  OutputPiece piece;
  REQUIRE(queue.Take(&piece));
  CHECK(piece.data == "frames");
  CHECK(piece.recording_ended);
  CHECK(piece.skipped_lines == 0);
  REQUIRE(queue.Take(&piece));
  CHECK(piece.data == "more");
  CHECK_FALSE(piece.recording_ended);
}

TEST_CASE("left-out lines are told where they were") {
  OutputQueue queue;
  queue.Begin(2, [](int) {});
  queue.Push(0, "a\n");
  queue.Skip(0, 7);
  queue.Push(0, "b\n");
  queue.PushEnd(0);
  uint64_t skipped = 0;
  CHECK(TakeAll(&queue, &skipped) == "a\n<7>b\n");
}

TEST_CASE(
    "what a slot's worker has left goes out as its own, with its end, before the next one's") {
  OutputQueue queue;
  queue.Begin(2, [](int) {});
  queue.Reopen(0, 7);
  const bool taken = GENERATE(true, false);
  uint64_t skipped = 0;
  queue.Push(0, "first\n");
  queue.Skip(0, 3);
  queue.PushEnd(0);
  if (taken) CHECK(TakeAll(&queue, &skipped) == "first\n<3>");
  queue.Reopen(0, 8);
  queue.Push(0, "second\n");
  queue.PushEnd(0);
  OutputPiece piece;
  if (!taken) {
    REQUIRE(queue.Take(&piece));
    CHECK(piece.member == 7);
    CHECK(piece.data == "first\n");
    CHECK(piece.skipped_lines == 3);
    CHECK(piece.end);
  }
  REQUIRE(queue.Take(&piece));
  CHECK(piece.member == 8);
  CHECK(piece.data == "second\n");
  CHECK(piece.end);
}

TEST_CASE("without acknowledgements the taker waits, and closing ends the wait") {
  OutputQueue queue;
  queue.Begin(2, [](int) {});
  queue.Push(0, std::string(100 << 10, 'x'));
  size_t taken = 0;
  std::thread taker([&] {
    OutputPiece piece;
    while (queue.Take(&piece)) taken += piece.data.size();
  });
  std::this_thread::yield();
  queue.Close();
  taker.join();
  CHECK(taken <= 16 << 10);
}

TEST_CASE("a reader that found no room is called when there is some") {
  OutputQueue queue;
  int called = -1;
  queue.Begin(4, [&](int stream) { called = stream; });
  CHECK(queue.Room(2) == OutputQueue::kRoom);
  queue.Push(2, std::string(OutputQueue::kRoom, 'x'));
  CHECK(queue.Room(2) == 0);
  uint64_t total = 0;
  OutputPiece piece;
  while (called < 0 && queue.Take(&piece)) queue.Acked(total += piece.data.size());
  CHECK(called == 2);
  CHECK(queue.Room(2) >= OutputQueue::kRoom / 2);
}

}  // namespace
}  // namespace hvd::daemon
