// SPDX-License-Identifier: Apache-2.0
// Allreduces of tensors in private memory on one host: staged, or, when large, read by the system
// from the peers' memory, where it lets them and where that proves faster.
//
// Threads: as HostGroup. One object a group.
#pragma once

#include <array>

#include "runtime/collective/host/host_group.h"
#include "runtime/collective/host/host_reduce.h"
#include "runtime/collective/host/staged_copy.h"
#include "runtime/collective/host/way_trial.h"

namespace hvd::rt {

struct PeerReadOptions {
  size_t least_bytes = size_t{4} << 20;  // of a tensor; 0: never
  bool untried = false;                  // wherever the system lets us, faster or not
};

class LargeReduce {
 public:
  LargeReduce();
  // REQUIRES: gather; size > 1; the same options on all ranks.
  absl::Status Run(HostGroup& group, const HostReduce& reduce, const StagedOptions& staged,
                   const PeerReadOptions& options);

 private:
  // By the binary order of a tensor's bytes.
  static constexpr int kSizes = 48;

  absl::Status Try(HostGroup& group, const HostReduce& reduce, const StagedOptions& staged,
                   WayTrial* trial);

  uint64_t token_;
  bool refused_ = false;  // on some rank the system does not let us
  std::array<WayTrial, kSizes> trials_;
};

}  // namespace hvd::rt
