// SPDX-License-Identifier: Apache-2.0
#include "runtime/sets/member_numbers.h"

#include <catch2/catch.hpp>

#include "runtime/engine/epoch_world.h"

namespace hvd::rt {
namespace {

TEST_CASE("a key belongs to its ranks, and to one set at a time") {
  MemberNumbers numbers;
  CHECK(numbers.TakeKey({0, 1}, "pipeline"));
  CHECK_FALSE(numbers.TakeKey({0, 1}, "pipeline"));
  CHECK(numbers.TakeKey({0, 2}, "pipeline"));
  CHECK(numbers.TakeKey({0, 1}, ""));
  numbers.GiveKey({0, 1}, "pipeline");
  CHECK(numbers.TakeKey({0, 1}, "pipeline"));
}

TEST_CASE("places in the page are those behind the sets that all ranks know") {
  MemberNumbers numbers;
  for (int i = 0; i < kMaxMemberSets; ++i) CHECK(numbers.TakeRegion() == kMaxProcessSets + i);
  CHECK(numbers.TakeRegion() == 0);
  numbers.GiveRegion(kMaxProcessSets + 3);
  CHECK(numbers.TakeRegion() == kMaxProcessSets + 3);
}

TEST_CASE("channels are taken once") {
  MemberNumbers numbers;
  CHECK(numbers.TakeChannels(20));
  CHECK_FALSE(numbers.TakeChannels(20));
  numbers.GiveChannels(20);
  CHECK(numbers.TakeChannels(20));
}

TEST_CASE("a rank's sets are counted, and their numbers differ from all others'") {
  MemberNumbers numbers;
  CHECK(numbers.NextLed() == 1);
  CHECK(numbers.NextLed() == 2);
  CHECK(MemberNumbers::IdOf(0, 1) == (1 << 30 | 1));
  CHECK(MemberNumbers::IdOf(3, 2) == (1 << 30 | 3 << 14 | 2));
  for (int i = 3; i < 1 << 14; ++i) (void)numbers.NextLed();
  CHECK(numbers.NextLed() == 0);
  numbers.Clear();
  CHECK(numbers.NextLed() == 1);
}

}  // namespace
}  // namespace hvd::rt
