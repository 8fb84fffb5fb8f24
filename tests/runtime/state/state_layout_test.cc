// SPDX-License-Identifier: Apache-2.0
// What lies where, and who writes which bytes.
#include "runtime/state/state_layout.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

namespace hvd::rt {
namespace {

StateItem Item(const std::string& name, int32_t kind, int64_t count) {
  StateItem item;
  item.name = name;
  item.kind = kind;
  item.dtype = HVD_FLOAT32;
  item.shape = {count};
  item.bytes = static_cast<uint64_t>(4 * count);
  return item;
}

TEST_CASE("items lie on lines, apart, the replicated first") {
  const StateLayout layout =
      PlanState({Item("z", HVD_STATE_REPLICATED, 3), Item("a", HVD_STATE_FIRST, 17),
                 Item("b", HVD_STATE_REPLICATED, 100), Item("c", HVD_STATE_REPLICATED, 0)});
  REQUIRE(layout.items.size() == 4);
  CHECK(layout.replicated == 3);
  CHECK(layout.items[0].name == "b");
  CHECK(layout.items[3].name == "a");
  CHECK(layout.items[0].offset == kStateItemsAt);
  uint64_t end = kStateItemsAt;
  for (const StateItem& item : layout.items) {
    CHECK(item.offset % kStateLine == 0);
    CHECK(item.offset >= end);
    end = item.offset + item.bytes;
  }
  CHECK(layout.replicated_end <= layout.items[3].offset);
  CHECK(layout.end >= end);
}

TEST_CASE("every byte of the replicated tensors is written once, by ranks that write as much") {
  std::mt19937 random(7);
  for (int turn = 0; turn < 200; ++turn) {
    std::vector<StateItem> items;
    const int count = static_cast<int>(random() % 8);
    items.reserve(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) {
      items.push_back(Item(std::string(1, static_cast<char>('a' + i)),
                           random() % 4 == 0 ? HVD_STATE_FIRST : HVD_STATE_REPLICATED,
                           static_cast<int64_t>(random() % 3000)));
    }
    const StateLayout layout = PlanState(items);
    const int ranks = 1 + static_cast<int>(random() % 9);
    std::vector<std::vector<int>> written(layout.items.size());
    for (size_t i = 0; i < layout.items.size(); ++i) written[i].resize(layout.items[i].bytes);
    uint64_t least = UINT64_MAX, most = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const ByteRange share = ShareOf(layout, rank, ranks);
      least = std::min(least, share.end - share.begin);
      most = std::max(most, share.end - share.begin);
      for (const StatePiece& piece : PiecesIn(layout, share)) {
        for (uint64_t i = 0; i < piece.bytes; ++i) ++written[piece.item][piece.from + i];
      }
    }
    CHECK(most - least <= kStateLine);
    for (size_t i = 0; i < layout.items.size(); ++i) {
      const int expected = i < layout.replicated ? 1 : 0;
      CHECK(std::all_of(written[i].begin(), written[i].end(),
                        [&](int times) { return times == expected; }));
    }
  }
}

TEST_CASE("the hash is that of the replicated tensors, whatever the order of adding") {
  const StateItem a = Item("a", HVD_STATE_REPLICATED, 3), b = Item("b", HVD_STATE_REPLICATED, 4);
  const uint64_t hash = PlanState({a, b}).hash;
  CHECK(PlanState({b, a}).hash == hash);
  CHECK(PlanState({b, a, Item("own", HVD_STATE_FIRST, 9)}).hash == hash);
  CHECK(PlanState({a}).hash != hash);
  StateItem other = b;
  other.dtype = HVD_INT32;
  CHECK(PlanState({a, other}).hash != hash);
  other = b;
  other.shape = {2, 2};
  CHECK(PlanState({a, other}).hash != hash);
  other = Item("c", HVD_STATE_REPLICATED, 4);
  CHECK(PlanState({a, other}).hash != hash);
  CHECK(PlanState({}).hash != 0);
  CHECK(hash < uint64_t{1} << 62);
}

}  // namespace
}  // namespace hvd::rt
