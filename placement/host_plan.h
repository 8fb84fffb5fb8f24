// SPDX-License-Identifier: Apache-2.0
// What of its host each slot gets, cores and GPUs: the one rule that hvdrun shows (--dry-run) and
// hvdd applies. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "placement/gpu.h"

namespace hvd {

struct HostWish {
  int slots = 0;
  // The number of GPUs for each slot, and no fewer; 0: CUDA_VISIBLE_DEVICES is left as it is. Not
  // given: each slot sees what is there.
  std::optional<int> gpus_per_rank;
  bool binds_cores = true;
  int most_cores = 0;  // of a slot, where the manager has given it so many; 0: its share
};

struct HostDevices {
  std::vector<int> cores;           // that may be used, in ascending order
  std::vector<Gpu> gpus;            // that may be given out, in the order of the slots
  std::string no_gpus;              // why none can be found
  std::optional<std::string> mask;  // that chose among the host's GPUs
};

struct SlotShare {
  std::vector<int> cores;            // empty: it is not bound
  std::vector<Gpu> gpus;             // its own; where `shared`, what it shares
  bool shared = false;               // there are fewer GPUs than slots
  std::vector<std::string> visible;  // UUIDs for CUDA_VISIBLE_DEVICES; empty: it is left as it is
};

struct HostPlan {
  std::vector<SlotShare> slots;
  std::string note;  // what the person should know of it; empty: nothing
};

// Slot i gets the GPUs i*k … i*k+k-1 of `gpus_per_rank` k, and sees no others. Not given: each slot
// sees all, so that index i is slot i's; but one of MIG instances, since CUDA shows a process one
// only. FailedPrecondition: there are too few; the message is for the person.
absl::StatusOr<HostPlan> PlanHost(const HostWish& wish, const HostDevices& devices);

// "GPU-1a2b3c4d NVIDIA H200 (index 1 of 4)"; "-" where there is none.
std::string FormatGpus(int slot, const SlotShare& share);

}  // namespace hvd
