// SPDX-License-Identifier: Apache-2.0
// One rank's bytes to all, in segments that follow one another: down a binomial tree when there are
// few bytes (few hops), along a chain when there are many (every link carries them once).
#pragma once

#include <memory>

#include "runtime/collective/message/run.h"

namespace hvd::rt {

struct MessageBroadcast {
  const std::byte* source = nullptr;  // on the root
  std::byte* output = nullptr;        // elsewhere; on the root nothing is written
  size_t bytes = 0;
  int root = 0;
  bool chain = false;
  size_t segment_bytes = 0;
};

std::unique_ptr<MessageRun> BroadcastRun(MessageGroup* group, const MessageBroadcast& broadcast);

}  // namespace hvd::rt
