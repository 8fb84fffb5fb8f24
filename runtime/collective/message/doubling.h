// SPDX-License-Identifier: Apache-2.0
// Recursive doubling: log2 n exchanges of everything, the lower group's sum first on both sides, so
// that both get the same bits.
#pragma once

#include <vector>

#include "runtime/collective/message/message_group.h"
#include "runtime/collective/message/reduce.h"

namespace hvd::rt {

// REQUIRES: size() > 1. `room` is resized to hold what a peer sends.
absl::Status DoublingAllreduce(MessageGroup* group, const MessageReduce& reduce,
                               std::vector<std::byte>* room);

}  // namespace hvd::rt
