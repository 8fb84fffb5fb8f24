// Which cores a rank gets: the one rule that hvdrun shows (--dry-run) and hvdd applies.
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

// "0-3,8"; "-" when empty.
std::string FormatCores(absl::Span<const int> cores);

}  // namespace hvd
