// SPDX-License-Identifier: Apache-2.0
// This process's arena: the memory behind hvd_alloc. One sparse memfd, mapped once, that the other
// ranks of the host map too (host_arenas), so that tensors in it are reduced where they lie. It
// lives as long as its owner (the process), through any number of epochs, and ends with the last
// process that has it open: there is no name to leave behind.
//
// Threads: any. At() takes no lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "runtime/session/arena_space.h"

namespace hvd {

// The file behind an arena, as it is passed to other processes.
struct ArenaFile {
  int fd = -1;  // -1: none
  uint64_t bytes = 0;
};

class Arena {
 public:
  Arena() = default;
  // Ends the mapping: whoever has memory of it must be gone.
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // The file, made at the first call: no page of it, and no mapping here. The descriptor stays the
  // arena's. Without one (-1) the system has refused; Allocate then says why.
  ArenaFile Share();

  // Memory on a cache line or better (ArenaSpace says where). Zero when it was never used before.
  // ResourceExhausted when the arena is full or the system gives none.
  absl::StatusOr<void*> Allocate(size_t bytes);
  // InvalidArgument for anything but the beginning of a piece that Allocate gave and nobody has
  // freed. Null is nothing. Pages of large pieces go back to the system.
  absl::Status Free(void* memory);

  // Offset of memory that lies in the arena as a whole; else -1.
  int64_t At(const void* memory, size_t bytes) const {
    const std::byte* base = base_.load(std::memory_order_acquire);
    if (base == nullptr) return -1;
    const uintptr_t offset =
        reinterpret_cast<uintptr_t>(memory) - reinterpret_cast<uintptr_t>(base);
    return offset < mapped_ && bytes <= mapped_ - offset ? static_cast<int64_t>(offset) : -1;
  }
  // Where it is mapped; null before the first Allocate.
  std::byte* base() const { return base_.load(std::memory_order_acquire); }

  // In a forked child: what lies in the arena becomes the child's own copy, written by it alone.
  // Only mmap and stores, as the child of a process with threads may.
  void DetachChild() ABSL_NO_THREAD_SAFETY_ANALYSIS;  // the lock may be held for ever

 private:
  absl::Status MakeFile() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Map() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::atomic<std::byte*> base_{nullptr};
  size_t mapped_ = 0;  // written before base_
  Mutex mutex_;
  ArenaFile file_ ABSL_GUARDED_BY(mutex_);
  absl::Status file_status_ ABSL_GUARDED_BY(mutex_);  // why there is none
  std::unique_ptr<ArenaSpace> space_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd
