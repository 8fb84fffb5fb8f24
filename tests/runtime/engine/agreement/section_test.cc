// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/agreement/board/section.h"

#include <catch2/catch.hpp>
#include <cstddef>
#include <vector>

namespace hvd::rt {
namespace {

constexpr BoardShape kShape = {3, 5, 64};

TEST_CASE("sections have all numbers once, each as many as all before it together") {
  std::byte* const at = nullptr;
  uint32_t next = 1;
  for (int k = 0; k < 8; ++k) {
    const BoardSection section = BoardSection::At(at, kShape, k);
    CHECK(section.first == next);
    if (k > 0) CHECK(section.count == next - 1);
    next += section.count;
  }
  CHECK(next == 64 * 128 + 1);
}

TEST_CASE("the parts of a section lie behind one another, and inside its bytes") {
  for (const int k : {0, 1, 3}) {
    std::vector<std::byte> memory(BoardSection::Bytes(kShape, k));
    const BoardSection section = BoardSection::At(memory.data(), kShape, k);
    const size_t count = section.count;
    const auto offset = [&](const void* part) {
      return static_cast<size_t>(static_cast<const std::byte*>(part) - memory.data());
    };
    CHECK(offset(section.buckets) == 0);
    CHECK(offset(section.log) >= sizeof(uint32_t) * 2 * count);
    CHECK(offset(section.batch_ends) - offset(section.log) >= sizeof(LogRecord) * count);
    CHECK(offset(section.entries) - offset(section.outstanding) >= 3 * count);
    CHECK(offset(section.marks) - offset(section.entries) >= sizeof(BoardEntry) * count);
    CHECK(offset(section.rows) - offset(section.marks) >= sizeof(MarkedValues) * 2 * 3 * count);
    CHECK(offset(section.text) - offset(section.rows) >= sizeof(int64_t) * 5 * count);
    CHECK(offset(section.text) + BoardSection::kTextBytes * count <= memory.size());
  }
}

}  // namespace
}  // namespace hvd::rt
