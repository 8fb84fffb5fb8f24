// SPDX-License-Identifier: Apache-2.0
// Everyone sends something of its own to everyone: an alltoall. Some pairs in flight at a time, in
// an order in which no rank is talked to by all at once.
#pragma once

#include <memory>
#include <vector>

#include "runtime/collective/message/run.h"

namespace hvd::rt {

struct ExchangePart {
  int peer = 0;  // not this rank
  const void* send = nullptr;
  size_t send_bytes = 0;
  void* receive = nullptr;
  size_t receive_bytes = 0;
};

// `parts`: in any order; pairs that exchange nothing may be left out on both sides.
std::unique_ptr<MessageRun> Exchange(MessageGroup* group, std::vector<ExchangePart> parts);

}  // namespace hvd::rt
