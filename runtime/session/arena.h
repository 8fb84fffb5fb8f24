// SPDX-License-Identifier: Apache-2.0
// This process's arena: the memory behind hvd_alloc. One sparse memfd, mapped as far as pieces lie
// in it, that the other ranks of the host map too (host_arenas), so that tensors in it are reduced
// where they lie. It
// lives as long as its owner (the process), through any number of epochs, and ends with the last
// process that has it open: there is no name to leave behind.
//
// Threads: any. At() takes no lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "runtime/session/arena_space.h"
#include "runtime/session/growing_map.h"

namespace hvd::rt {

// The file behind an arena, as it is passed to other processes.
struct ArenaFile {
  int fd = -1;  // -1: none
  uint64_t bytes = 0;
};

class Arena {
 public:
  Arena() = default;
  // Ends the mappings: whoever has memory of it must be gone.
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // The file, made at the first call: no page of it, and no mapping here. The descriptor stays the
  // arena's. Without one (-1) the system has refused; Allocate then says why.
  ArenaFile Share();

  // Memory on a cache line or better (ArenaSpace says where). Zero when it was never used before.
  // ResourceExhausted when the arena is full or the system gives none; smaller pieces may be there.
  absl::StatusOr<void*> Allocate(size_t bytes);
  // InvalidArgument for anything but the beginning of a piece that Allocate gave and nobody has
  // freed. Null is nothing. Pages of large pieces go back to the system.
  absl::Status Free(void* memory);

  // Offset of memory that lies in the arena as a whole, where it is mapped; else -1.
  int64_t At(const void* memory, size_t bytes) const { return map_.At(memory, bytes); }
  // Returns the bytes that lie there, once they have been mapped for some piece; else null.
  std::byte* Find(int64_t offset, size_t bytes) const {
    return map_.Find(static_cast<uint64_t>(offset), bytes);
  }
  uint64_t mapped_bytes() const { return map_.mapped_bytes(); }

  // In a forked child: what lies in the arena becomes the child's own copy, written by it alone.
  // Only mmap and stores, as the child of a process with threads may.
  void DetachChild() { map_.DetachChild(); }

 private:
  absl::Status MakeFile() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  ArenaFile file_ ABSL_GUARDED_BY(mutex_);
  absl::Status file_status_ ABSL_GUARDED_BY(mutex_);  // why there is none
  std::unique_ptr<ArenaSpace> space_ ABSL_GUARDED_BY(mutex_);
  GrowingMap map_{GrowingMap::InChildren::kSeen};
};

}  // namespace hvd::rt
