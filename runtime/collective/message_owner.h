// An allreduce whose order of summation is the ranks' own, wherever an element lies: every rank
// sends each slice to its owner, who sums in rank order and sends the result to all. The same bytes
// on the wire as a ring, but everyone talks to everyone.
#pragma once

#include <memory>

#include "runtime/collective/message_reduce.h"
#include "runtime/collective/message_run.h"

namespace hvd {

// REQUIRES: size() > 1. The buffers must live until the run is finished or destroyed.
std::unique_ptr<MessageRun> OwnerAllreduce(MessageGroup* group, const MessageReduce& reduce);

// Everyone sends everything to everyone, and sums in rank order: one exchange, for a few bytes.
std::unique_ptr<MessageRun> OneShotAllreduce(MessageGroup* group, const MessageReduce& reduce);

}  // namespace hvd
