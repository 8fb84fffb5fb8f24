// SPDX-License-Identifier: Apache-2.0
// The lock and the role that say who may do what in an engine, so that clang checks it
// (-Wthread-safety). The two stand for the lock and the role of the engine at hand: no engine ever
// touches another's requests.
#pragma once

#include "base/mutex.h"

namespace hvd::rt {

// Held for a moment by whoever submits, waits or completes (ExecutorRole::Lock). Never during a
// collective, but for a small one whose peers are there already.
inline constexpr ThreadRole kEngineLock{};
// Held by the one thread that executes: one that waits, or the engine's own (ExecutorRole::Term).
inline constexpr ThreadRole kExecutor{};

}  // namespace hvd::rt
