// SPDX-License-Identifier: Apache-2.0
#include <atomic>

#include "runtime/transport/waiter.h"

namespace hvd::rt {

void Pause() { std::atomic_signal_fence(std::memory_order_seq_cst); }

}  // namespace hvd::rt
