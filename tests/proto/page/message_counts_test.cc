// SPDX-License-Identifier: Apache-2.0
#include "proto/page/message_counts.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <thread>

namespace hvd {
namespace {

using What = MessageCounts::What;

TEST_CASE("messages are counted by peer, channel and step") {
  auto counts = std::make_unique<MessageCounts>();
  CHECK(counts->Read().empty());
  for (int i = 0; i < 3; ++i) counts->Count(0, 2, 8, What::kSent);
  counts->Count(0, 2, 8, What::kAsked);
  counts->Count(0, 2, 8, What::kAsked);
  counts->Count(0, 2, 8, What::kCame);
  counts->Count(1000000, 1, 0xffffffff, What::kSent);
  const auto read = counts->Read();
  REQUIRE(read.size() == 2);
  const MessageCount& ring = read[read[0].peer == 0 ? 0 : 1];
  CHECK(ring.channel == 2);
  CHECK(ring.step == 8);
  CHECK(ring.sent == 3);
  CHECK(ring.asked == 2);
  CHECK(ring.came == 1);
  const MessageCount& far = read[read[0].peer == 0 ? 1 : 0];
  CHECK(far.peer == 1000000);
  CHECK(far.step == 0xffffffff);
}

TEST_CASE("whatever is over makes room for what comes next") {
  auto counts = std::make_unique<MessageCounts>();
  for (uint32_t step = 0; step < 100000; step += 2) {
    for (const uint32_t peer : {3u, 5u}) {
      counts->Count(peer, 2, step, What::kSent);
      counts->Count(peer, 2, step, What::kAsked);
    }
    int found = 0;
    for (const MessageCount& count : counts->Read()) found += count.step == step;
    REQUIRE(found == 2);
  }
}

TEST_CASE("what is under way stays while others come and go beside it") {
  auto counts = std::make_unique<MessageCounts>();
  for (uint32_t round = 0; round < 20000; ++round) {
    // Both neighbours of a ring, in the three chunks that are under way.
    for (uint32_t step = round; step < round + 3; ++step) {
      counts->Count(3, 2, 2 * step, What::kSent);
      counts->Count(5, 2, 2 * step, What::kAsked);
    }
  }
  uint32_t sent = 0, asked = 0;
  for (const MessageCount& count : counts->Read()) {
    if (count.step == 2 * 19999) sent += count.sent, asked += count.asked;
  }
  CHECK(sent == 3);
  CHECK(asked == 3);
}

TEST_CASE("what is read while it changes never says that more came than was asked for") {
  auto counts = std::make_unique<MessageCounts>();
  std::atomic<bool> over{false};
  std::thread rank([&] {
    for (uint32_t step = 0; !over; ++step) {
      for (int i = 0; i < 4; ++i) {
        counts->Count(1, 2, step, What::kAsked);
        counts->Count(1, 2, step, What::kCame);
      }
    }
  });
  int wrong = 0;
  for (int looks = 0; looks < 2000; ++looks) {
    for (const MessageCount& count : counts->Read()) wrong += count.came > count.asked;
  }
  over = true;
  rank.join();
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace hvd
