// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/direct/direct.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "runtime/engine/direct/direct_execute.h"
#include "tests/runtime/engine/direct/direct_world.h"

namespace hvd::rt {
namespace {

using test::DirectWorld;

Signature Sum(int64_t elements) {
  Signature s;
  s.kind = RequestKind::kAllreduce;
  s.dtype = HVD_FLOAT32;
  s.op = HVD_SUM;
  s.ndim = 1;
  s.shape[0] = elements;
  return s;
}

void Mark(Direct& rank, const DirectTicket& ticket, const std::vector<float>& tensor) {
  const uint64_t word = DirectWordOf(Sum(static_cast<int64_t>(tensor.size())));
  memcpy(rank.Room(ticket, word), tensor.data(), BytesOfDirectWord(word));
  rank.Publish(ticket, word);
}

// Takes all numbers.
void Fill(DirectWorld& world) {
  for (uint32_t i = 0; world.ranks[0]->numbers().Number("n" + std::to_string(i)) != 0; ++i) {
  }
}

TEST_CASE("names have the same number on every rank, and too many have none on any") {
  DirectWorld world(2);
  CHECK(world.ranks[0]->numbers().Number("a") == world.ranks[1]->numbers().Number("a"));
  CHECK(world.ranks[0]->numbers().Number("b") != world.ranks[1]->numbers().Number("a"));
  Fill(world);
  CHECK(world.ranks[1]->numbers().Number("one more") == 0);
  CHECK(world.ranks[0]->numbers().Bind("one more") == 0);
  CHECK(world.ranks[1]->numbers().Number("b") != 0);
}

TEST_CASE("a number that all ranks have given up is another name's, which begins anew") {
  DirectWorld world(2);
  const uint64_t word = DirectWordOf(Sum(1));
  const uint32_t number = world.ranks[0]->numbers().Number("x");
  REQUIRE(world.ranks[1]->numbers().Number("x") == number);
  for (const uint64_t round : {0, 1}) {
    for (uint64_t count = 0; count < 5; ++count) {
      for (const auto& rank : world.ranks) Mark(*rank, {number, round, count}, {1});
      for (const auto& rank : world.ranks) rank->PublishDone({number, round, count});
    }
  }
  Fill(world);
  CHECK_FALSE(world.ranks[0]->GiveUp(number));
  SECTION("one uses it again first") {
    CHECK(world.ranks[0]->numbers().Number("x") == number);
    CHECK(world.ranks[0]->Latest(number, 1).count == 4);
    CHECK_FALSE(world.ranks[1]->GiveUp(number));
    CHECK(world.ranks[0]->numbers().Bind("y") == 0);
    CHECK(world.ranks[0]->GiveUp(number));
  }
  SECTION("all do") { CHECK(world.ranks[1]->GiveUp(number)); }
  // A rank that asks is too early: the others may have asked before.
  CHECK(world.ranks[0]->numbers().Number("x") == 0);
  CHECK(world.ranks[0]->numbers().Number("y") == 0);
  REQUIRE(world.ranks[1]->numbers().Bind("y") == number);
  CHECK(world.ranks[0]->numbers().Number("y") == number);
  CHECK(world.ranks[0]->numbers().Number("x") == 0);
  CHECK(world.ranks[0]->Latest(number, 1).round == 0);
  const DirectTicket ticket = {number, 1, 0};
  Mark(*world.ranks[0], ticket, {1});
  CHECK(world.ranks[0]->Look(ticket, word) == Direct::Seen::kNotYet);
  CHECK_FALSE(world.ranks[0]->AllDone(ticket));
  Mark(*world.ranks[1], ticket, {1});
  CHECK(world.ranks[0]->Look(ticket, word) == Direct::Seen::kAllSame);
}

TEST_CASE("all marks the same: every rank reads every tensor, in the line and beyond it") {
  for (const size_t count : {1u, 12u, 28u, 29u, 1024u}) {
    DirectWorld world(3);
    const DirectTicket ticket = {world.ranks[0]->numbers().Number("x"), 0, 0};
    const uint64_t word = DirectWordOf(Sum(static_cast<int64_t>(count)));
    for (int r = 0; r < 3; ++r) {
      CHECK(world.ranks[0]->Look(ticket, word) == Direct::Seen::kNotYet);
      Mark(*world.ranks[r], ticket, std::vector<float>(count, r + 1.0f));
    }
    for (int r = 0; r < 3; ++r) {
      REQUIRE(world.ranks[r]->Look(ticket, word) == Direct::Seen::kAllSame);
      std::vector<float> sum(count, r + 1.0f);
      Request request;
      request.signature = Sum(static_cast<int64_t>(count));
      request.buffers.input = request.buffers.output = sum.data();
      REQUIRE(ExecuteDirect(*world.ranks[r], ticket, &request).ok());
      CHECK(sum == std::vector<float>(count, 6.0f));
    }
  }
}

TEST_CASE("a number that only some ranks ever had is free when these have given it up") {
  DirectWorld world(3);
  const uint32_t number = world.ranks[0]->numbers().Number("x");
  CHECK(world.ranks[2]->numbers().Number("x") == number);
  Fill(world);
  CHECK_FALSE(world.ranks[0]->GiveUp(number));
  CHECK(world.ranks[2]->GiveUp(number));
  CHECK(world.ranks[2]->numbers().Bind("y") == number);
  for (const int rank : {2, 1}) CHECK_FALSE(world.ranks[rank]->GiveUp(number));
  CHECK(world.ranks[0]->GiveUp(number));
}

TEST_CASE("one mark that differs sends every rank through the board") {
  DirectWorld world(2);
  const DirectTicket ticket = {world.ranks[0]->numbers().Number("x"), 0, 0};
  Mark(*world.ranks[0], ticket, {1, 2, 3});
  SECTION("another shape") { Mark(*world.ranks[1], ticket, {1, 2}); }
  SECTION("too large") { world.ranks[1]->Publish(ticket, DirectWordOf(Sum(5000))); }
  SECTION("joined") { world.ranks[1]->Leave(1); }
  CHECK(world.ranks[0]->Look(ticket, DirectWordOf(Sum(3))) == Direct::Seen::kThroughBoard);
}

TEST_CASE("a rank that marks and then joins has marked") {
  DirectWorld world(2);
  const DirectTicket ticket = {world.ranks[0]->numbers().Number("x"), 0, 0};
  Mark(*world.ranks[1], ticket, {1});
  world.ranks[1]->Leave(1);
  Mark(*world.ranks[0], ticket, {1});
  CHECK(world.ranks[0]->Look(ticket, DirectWordOf(Sum(1))) == Direct::Seen::kAllSame);
}

TEST_CASE("after a join ranks that used a name more or less often meet again") {
  DirectWorld world(2);
  const uint32_t number = world.ranks[0]->numbers().Number("x");
  const uint64_t word = DirectWordOf(Sum(1));
  for (uint64_t round = 0; round < 5; ++round) {
    for (const auto& rank : world.ranks) rank->BeginRound(round, 0);
    const DirectTicket ticket = {number, round, 0};
    Mark(*world.ranks[1], ticket, {1});
    CHECK(world.ranks[1]->Look(ticket, word) == Direct::Seen::kNotYet);
    CHECK_FALSE(world.ranks[1]->AllDone(ticket));
    Mark(*world.ranks[0], ticket, {1});
    CHECK(world.ranks[1]->Look(ticket, word) == Direct::Seen::kAllSame);
    for (const auto& rank : world.ranks) rank->PublishDone(ticket);
    // Rank 1 has joined; rank 0 goes on.
    for (uint64_t count = 1; count < 6 + round; ++count) {
      Mark(*world.ranks[0], {number, round, count}, {1});
    }
  }
}

TEST_CASE("a name that was used 2^32 times is used on") {
  DirectWorld world(2);
  const uint32_t number = world.ranks[0]->numbers().Number("x");
  const uint64_t word = DirectWordOf(Sum(1));
  constexpr uint64_t kWrap = uint64_t{1} << 32;
  for (uint64_t count = kWrap - 4; count < kWrap + 4; ++count) {
    const DirectTicket ticket = {number, 0, count};
    const auto value = static_cast<float>(count - kWrap + 100);
    Mark(*world.ranks[0], ticket, {value});
    REQUIRE(world.ranks[0]->Look(ticket, word) == Direct::Seen::kNotYet);
    Mark(*world.ranks[1], ticket, {value});
    REQUIRE(world.ranks[0]->Look(ticket, word) == Direct::Seen::kAllSame);
    float seen = 0;
    memcpy(&seen, world.ranks[0]->TensorAt(ticket, 1), sizeof(seen));
    CHECK(seen == value);
    CHECK_FALSE(world.ranks[0]->AllDone(ticket));
    for (const auto& rank : world.ranks) rank->PublishDone(ticket);
    CHECK(world.ranks[1]->AllDone(ticket));
  }
}

}  // namespace
}  // namespace hvd::rt
