// SPDX-License-Identifier: Apache-2.0
// The arenas of all ranks of this host, as this process sees them in one epoch.
//
// Threads: any, once made. The mappings end with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/session/arena.h"

namespace hvd {

class HostArenas {
 public:
  // `files` by local rank, whose descriptors are taken. `own` is this process's arena (null: none),
  // which is seen where it is mapped already.
  static std::unique_ptr<HostArenas> Map(std::vector<ArenaFile> files, int local_rank,
                                         const Arena* own);
  ~HostArenas();
  HostArenas(const HostArenas&) = delete;
  HostArenas& operator=(const HostArenas&) = delete;

  // Every rank that has an arena is seen here. A rank for which this is false must not offer its
  // own memory (Offer), so that all ranks of the host take the same way.
  bool complete() const { return complete_; }
  // Where this process's tensor lies for the others, or -1: not in its arena, or not all arenas are
  // seen here.
  int64_t Offer(const void* memory, size_t bytes) const {
    return complete_ && own_ != nullptr ? own_->At(memory, bytes) : -1;
  }
  // The tensor that `local_rank` offered, here. Null when the rank has no such memory.
  std::byte* Address(int local_rank, int64_t offset, size_t bytes = 0) const;

 private:
  struct Mapping {
    std::byte* base = nullptr;
    uint64_t bytes = 0;
  };
  HostArenas(int local_rank, const Arena* own) : local_rank_(local_rank), own_(own) {}
  bool MapOne(const ArenaFile& file, int place, Mapping* mapping);

  const int local_rank_;
  const Arena* const own_;
  bool complete_ = true;
  std::vector<Mapping> mappings_;  // by local rank; none of this process's own
};

}  // namespace hvd
