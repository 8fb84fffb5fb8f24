// SPDX-License-Identifier: Apache-2.0
// Which cores a rank gets: the one rule that hvdrun shows (--dry-run) and hvdd applies. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"

namespace hvd {

// The share of `cores` (ids in ascending order) that belongs to local_rank of local_size ranks:
// contiguous, disjoint, and as even as can be, earlier ranks getting one more. With more ranks than
// cores: where as many ranks come to each core, each rank has one of them, so that no core is left
// with more to do than another; else every rank gets all, which is the same as no pinning.
std::vector<int> CoresFor(int local_rank, int local_size, absl::Span<const int> cores);

struct CoreWish {
  std::vector<int> cores;              // of the host, in ascending order
  std::vector<std::vector<int>> near;  // by slot: those near its GPUs; empty: any will do
  bool may_lose = false;  // a slot may get fewer cores than its even share, if these are near
};

// By slot. Slots that are near to the same cores share these evenly, and the others share what is
// left. All get their even share of the host (CoresFor) where that cannot be: where near cores are
// too few or not known, or overlap in part with those of another slot.
std::vector<std::vector<int>> PlanCores(const CoreWish& wish);

// "0-3,8"; "-" when empty.
std::string FormatCores(absl::Span<const int> cores);

}  // namespace hvd
