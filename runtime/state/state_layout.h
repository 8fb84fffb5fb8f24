// SPDX-License-Identifier: Apache-2.0
// What lies where in the files of a state's commits, and which rank of a host writes which bytes.
// Pure.
//
// A file: the head with the ranks' cells (proto/page/state_box.h), the place of the directory, the
// replicated tensors, then what one rank alone writes: other tensors, bytes, and the directory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hvd/hvd.h"
#include "proto/page/state_box.h"

namespace hvd::rt {

// A tensor, or bytes, under a name.
struct StateItem {
  std::string name;
  int32_t kind = HVD_STATE_REPLICATED;
  bool is_bytes = false;  // of hvd_state_put; dtype and shape are not used then
  int32_t dtype = HVD_UINT8;
  std::vector<int64_t> shape;
  uint64_t bytes = 0;
  uint64_t offset = 0;  // in the file
};

// "'fc1.weight', float32 [64,10]"
std::string Describe(const StateItem& item);

inline constexpr uint64_t kStateItemsAt = kStateContentsAt + 4096;
inline constexpr uint64_t kStateLine = 64;  // items begin at multiples of it

struct ByteRange {
  uint64_t begin = 0, end = 0;
};

struct StateLayout {
  std::vector<StateItem> items;  // with their offsets: the replicated first, each group by name
  size_t replicated = 0;         // so many of them
  uint64_t replicated_end = kStateItemsAt;
  uint64_t end = kStateItemsAt;  // the directory's place
  uint64_t hash = 1;             // of the replicated tensors; not 0, and no more than 62 bits
};
StateLayout PlanState(std::vector<StateItem> items);

// The bytes of the replicated tensors that a local rank writes: all ranks' together are all, each
// has as many but for a line.
ByteRange ShareOf(const StateLayout& layout, int local_rank, int local_size);

// Some bytes of an item.
struct StatePiece {
  size_t item = 0;  // its index
  uint64_t from = 0, bytes = 0;
};
std::vector<StatePiece> PiecesIn(const StateLayout& layout, const ByteRange& range);

}  // namespace hvd::rt
