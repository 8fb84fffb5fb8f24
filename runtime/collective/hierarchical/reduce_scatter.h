// SPDX-License-Identifier: Apache-2.0
// A reduce-scatter over several hosts: each block (what one host's ranks get) is reduced inside
// every host, slice by slice for the rails; along each rail every host gets the sum of its block's
// slice.
#pragma once

#include "runtime/collective/hierarchical/rails.h"

namespace hvd::rt {

// REQUIRES: several hosts; not TravelsWide. Threads: as Rails.
absl::Status ReduceScatterAcross(Rails& rails, const ReduceScatterArgs& args);

}  // namespace hvd::rt
