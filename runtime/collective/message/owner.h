// SPDX-License-Identifier: Apache-2.0
// Reductions whose order of summation is the ranks' own, wherever an element lies: every rank sends
// each slice to its owner, who sums in rank order and, in an allreduce, sends the result to all.
// The same bytes on the wire as a ring, but everyone talks to everyone.
#pragma once

#include <memory>
#include <vector>

#include "runtime/collective/message/reduce.h"
#include "runtime/collective/message/ring.h"
#include "runtime/collective/message/run.h"

namespace hvd::rt {

// REQUIRES: size() > 1. The buffers must live until the run is finished or destroyed.
std::unique_ptr<MessageRun> OwnerAllreduce(MessageGroup* group, const MessageReduce& reduce);

// As RingReduceScatter: rank r's slice of the input is slices[r]; its result goes to the output's
// begin.
std::unique_ptr<MessageRun> OwnerReduceScatter(MessageGroup* group, const MessageReduce& reduce,
                                               std::vector<Extent> slices);

// Everyone sends everything to everyone, and sums in rank order: one exchange, for a few bytes.
std::unique_ptr<MessageRun> OneShotAllreduce(MessageGroup* group, const MessageReduce& reduce);

}  // namespace hvd::rt
