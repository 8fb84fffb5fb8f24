// SPDX-License-Identifier: Apache-2.0
// Reductions as a signature asks for them, as calls of the collectives.
#pragma once

#include "runtime/collective/collectives.h"
#include "runtime/engine/agreement/board/log_entry.h"

namespace hvd::rt {

// The allreduce of one or more agreed entries with the same type, op, scales, compression and
// contributors, of which `entry` is one: plain, compressed or Adasum.
absl::Status Reduce(const LogEntry& entry, absl::Span<const ReducePart> parts,
                    Collectives* collectives);

// A plain one as a call. The parts are borrowed.
ReduceArgs PlainArgs(const LogEntry& entry, absl::Span<const ReducePart> parts);

// The same of a reduce-scatter. `args`' tensors are filled in.
absl::Status Scatter(const LogEntry& entry, ReduceScatterArgs args, Collectives* collectives);

// Adds the tensors of a request, one or a group.
void AppendParts(const Request& request, std::vector<ReducePart>* parts);

// Whether all ranks of `size` brought something.
bool AllContribute(const LogEntry& entry, int size);
// An allreduce that cannot be done while a rank has joined, since its tensors lie on a device; the
// same on all ranks.
absl::Status CheckJoined(const LogEntry& entry, int size);
// Whether each rank scales its own input first, for a rank has joined: what that one brings to MIN,
// MAX and PRODUCT is neutral only if nobody scales it.
bool ScalesFirst(const LogEntry& entry, int size);
// As Reduce, of such an entry, on a rank that has not joined.
absl::Status ReduceScaledFirst(const LogEntry& entry, absl::Span<const ReducePart> parts,
                               Collectives* collectives);
// Returns the entry in which a rank that has joined takes part then.
LogEntry WithoutPrescale(const LogEntry& entry);

}  // namespace hvd::rt
