// SPDX-License-Identifier: Apache-2.0
// Whether this process is the child of a fork of one that has used hvd. It has that one's memory
// but none of its threads: it must not use the engine, and a mutex may be held there for ever.
//
// Threads: any. A flag instead of getpid on each call.
#pragma once

#include <atomic>

namespace hvd::rt {

inline std::atomic<bool> is_forked_child{false};

inline bool IsForkedChild() { return is_forked_child.load(std::memory_order_relaxed); }
// The child calls it, once, before anything else.
inline void NoteForkedChild() { is_forked_child.store(true); }

}  // namespace hvd::rt
