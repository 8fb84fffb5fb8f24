// SPDX-License-Identifier: Apache-2.0
// Directories are other processes' words: whatever the bytes, what is read lies within the file.
#include "runtime/state/directory.h"

#include <catch2/catch.hpp>
#include <random>

namespace hvd::rt {
namespace {

constexpr uint64_t kFileBytes = kStateItemsAt + 100000;

std::vector<StateItem> SomeItems() {
  StateItem weights;
  weights.name = "weights";
  weights.dtype = HVD_FLOAT32;
  weights.shape = {10, 20};
  weights.bytes = 800;
  weights.offset = kStateItemsAt;
  StateItem scalar;
  scalar.name = "scalar";
  scalar.kind = HVD_STATE_PRIVATE;
  scalar.dtype = HVD_FLOAT64;
  scalar.bytes = 8;
  scalar.offset = kStateItemsAt + 832;
  StateItem bytes;
  bytes.name = "bytes";
  bytes.kind = HVD_STATE_FIRST;
  bytes.is_bytes = true;
  bytes.bytes = 5;
  bytes.offset = kStateItemsAt + 896;
  return {weights, scalar, bytes};
}

bool Same(const StateItem& a, const StateItem& b) {
  return a.name == b.name && a.kind == b.kind && a.is_bytes == b.is_bytes && a.dtype == b.dtype &&
         a.shape == b.shape && a.bytes == b.bytes && a.offset == b.offset;
}

TEST_CASE("a directory is read as it was written") {
  const std::vector<StateItem> items = SomeItems();
  const auto read = ReadDirectory(WriteDirectory(items), kFileBytes);
  REQUIRE(read.ok());
  REQUIRE(read->size() == items.size());
  for (size_t i = 0; i < items.size(); ++i) CHECK(Same((*read)[i], items[i]));
  CHECK(ReadDirectory("", kFileBytes)->empty());
}

TEST_CASE("what does not fit is refused") {
  const auto is_refused = [](void (*change)(StateItem*)) {
    std::vector<StateItem> items = SomeItems();
    change(&items[0]);
    const auto read = ReadDirectory(WriteDirectory(items), kFileBytes);
    return !read.ok() && absl::IsDataLoss(read.status());
  };
  CHECK(is_refused([](StateItem* item) { item->offset = kFileBytes - 64; }));
  CHECK(is_refused([](StateItem* item) { item->offset = UINT64_MAX - 63; }));
  CHECK(is_refused([](StateItem* item) { item->offset = 0; }));
  CHECK(is_refused([](StateItem* item) { item->offset += 4; }));
  CHECK(is_refused([](StateItem* item) { item->bytes = 801; }));
  CHECK(is_refused([](StateItem* item) { item->shape = {-10, -20}; }));
  CHECK(is_refused([](StateItem* item) { item->shape = {int64_t{1} << 62, 8}; }));
  CHECK(is_refused([](StateItem* item) { item->shape.assign(17, 1); }));
  CHECK(is_refused([](StateItem* item) { item->dtype = 99; }));
  CHECK(is_refused([](StateItem* item) { item->kind = 3; }));
  CHECK(is_refused([](StateItem* item) { item->name = "scalar"; }));
  CHECK(is_refused([](StateItem* item) { item->name = ""; }));
  CHECK(is_refused([](StateItem* item) { item->name.assign(4096, 'a'); }));
  CHECK(is_refused([](StateItem* item) { item->is_bytes = true; }));  // of the ranks together
  CHECK(!is_refused([](StateItem*) {}));
}

TEST_CASE("no bytes whatever make an item outside of the file") {
  std::mt19937_64 random(11);
  const std::string whole = WriteDirectory(SomeItems());
  int read_ones = 0;
  for (int turn = 0; turn < 20000; ++turn) {
    std::string bytes = whole;
    for (uint64_t changes = 1 + random() % 4; changes > 0; --changes) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    if (random() % 4 == 0) bytes.resize(random() % (bytes.size() + 1));
    const auto read = ReadDirectory(bytes, kFileBytes);
    if (!read.ok()) continue;
    ++read_ones;
    for (const StateItem& item : *read) {
      REQUIRE(item.offset >= kStateItemsAt);
      REQUIRE(item.offset <= kFileBytes);
      REQUIRE(item.bytes <= kFileBytes - item.offset);
    }
  }
  CHECK(read_ones > 0);
}

TEST_CASE("the directory's own place lies in the file") {
  CHECK(CheckPlace({kDirectoryMagic, kStateItemsAt, 100, 0}, kFileBytes).ok());
  CHECK(!CheckPlace({0, kStateItemsAt, 100, 0}, kFileBytes).ok());
  CHECK(!CheckPlace({kDirectoryMagic, 0, 100, 0}, kFileBytes).ok());
  CHECK(!CheckPlace({kDirectoryMagic, kFileBytes + 1, 0, 0}, kFileBytes).ok());
  CHECK(!CheckPlace({kDirectoryMagic, kFileBytes, 1, 0}, kFileBytes).ok());
  CHECK(!CheckPlace({kDirectoryMagic, kStateItemsAt, UINT64_MAX, 0}, kFileBytes).ok());
}

}  // namespace
}  // namespace hvd::rt
