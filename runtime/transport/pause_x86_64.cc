// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/waiter.h"

namespace hvd::rt {

void Pause() { __builtin_ia32_pause(); }

}  // namespace hvd::rt
