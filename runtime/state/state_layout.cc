// SPDX-License-Identifier: Apache-2.0
#include "runtime/state/state_layout.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/printable.h"
#include "base/stable_hash.h"
#include "runtime/collective/reduction_rules.h"

namespace hvd::rt {
namespace {

uint64_t NextLine(uint64_t at) { return (at + kStateLine - 1) / kStateLine * kStateLine; }

uint64_t HashOf(const StateLayout& layout) {
  StableHash hash;
  for (size_t i = 0; i < layout.replicated; ++i) {
    const StateItem& item = layout.items[i];
    hash.Add(item.name.size()).Add(item.name);
    hash.Add(static_cast<uint64_t>(item.dtype));
    hash.Add(item.shape.size());
    for (const int64_t length : item.shape) hash.Add(static_cast<uint64_t>(length));
  }
  return (hash.value() >> 2) | 1;
}

}  // namespace

std::string Describe(const StateItem& item) {
  const std::string name = ShownName(item.name);
  if (item.is_bytes) return absl::StrCat(name, ", ", item.bytes, " bytes");
  return absl::StrCat(name, ", ", DtypeName(static_cast<hvd_dtype_t>(item.dtype)), " [",
                      absl::StrJoin(item.shape, ","), "]");
}

StateLayout PlanState(std::vector<StateItem> items) {
  StateLayout layout;
  layout.items = std::move(items);
  std::sort(layout.items.begin(), layout.items.end(), [](const StateItem& a, const StateItem& b) {
    const bool first = a.kind == HVD_STATE_REPLICATED, second = b.kind == HVD_STATE_REPLICATED;
    return first != second ? first : a.name < b.name;
  });
  uint64_t at = kStateItemsAt;
  for (StateItem& item : layout.items) {
    item.offset = at;
    at = NextLine(at + item.bytes);
    if (item.kind != HVD_STATE_REPLICATED) continue;
    ++layout.replicated;
    layout.replicated_end = at;
  }
  layout.end = at;
  layout.hash = HashOf(layout);
  return layout;
}

ByteRange ShareOf(const StateLayout& layout, int local_rank, int local_size) {
  const uint64_t lines = (layout.replicated_end - kStateItemsAt) / kStateLine;
  const auto ranks = static_cast<uint64_t>(local_size);
  const auto at = [&](uint64_t rank) {
    const uint64_t more = std::min(rank, lines % ranks);
    return kStateItemsAt + (lines / ranks * rank + more) * kStateLine;
  };
  const auto rank = static_cast<uint64_t>(local_rank);
  return {at(rank), at(rank + 1)};
}

std::vector<StatePiece> PiecesIn(const StateLayout& layout, const ByteRange& range) {
  std::vector<StatePiece> pieces;
  for (size_t i = 0; i < layout.replicated; ++i) {
    const StateItem& item = layout.items[i];
    const uint64_t begin = std::max(range.begin, item.offset);
    const uint64_t end = std::min(range.end, item.offset + item.bytes);
    if (begin < end) pieces.push_back({i, begin - item.offset, end - begin});
  }
  return pieces;
}

}  // namespace hvd::rt
