// SPDX-License-Identifier: Apache-2.0
// Which of a batch's entries run as one collective. Pure: every rank computes the same plan from
// the same batch.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/engine/agreement/board/log_entry.h"

namespace hvd::rt {

// An allreduce that is nothing but that: it may be fused with others.
bool ReducesPlainly(const LogEntry& entry);
// A single tensor that can be summed where it lies, if the host's ranks reach it.
bool ReducesInPlace(const Signature& signature);

struct FusionRules {
  size_t threshold = 0;       // bytes of one collective; 0: nothing is fused
  bool groups_alone = false;  // a group is not fused with what does not belong to it
  bool several_hosts = false;
};

// Indices into the batch, in the order in which to run them. Allreduces of the same type,
// operation, scales and compression follow one another in one run up to the threshold; a tensor of
// that size or more, and everything else, runs by itself. Tensors that all ranks of the host have
// in shared memory are not mixed with tensors that they have not; with several hosts they may be,
// for each host has others there, and all must come to the same plan.
std::vector<std::vector<size_t>> PlanFusion(const std::vector<LogEntry>& batch,
                                            const FusionRules& rules);

}  // namespace hvd::rt
