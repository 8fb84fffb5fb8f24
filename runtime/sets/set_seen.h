// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "hvd/hvd.h"

namespace hvd::rt {

// A process set as one of its members sees it.
struct Membership {
  int32_t id = HVD_GLOBAL_PROCESS_SET;
  absl::Span<const int> ranks;  // global, ascending
  int index = 0;                // this rank's among them

  int size() const { return static_cast<int>(ranks.size()); }
};

}  // namespace hvd::rt
