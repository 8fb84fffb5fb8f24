// SPDX-License-Identifier: Apache-2.0
// The arenas of all ranks of this host, as this process sees them in one epoch. It maps the parts
// of another's arena that it meets (growing_map). Ranks agree before on the part that can be met:
// each says how much of the others' arenas it has address space for, and no rank offers what lies
// behind the least of that.
//
// Threads: any, once made and agreed. The mappings end with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/descriptor.h"
#include "runtime/session/arena.h"
#include "runtime/session/growing_map.h"

namespace hvd::rt {

class HostArenas {
 public:
  // `files` by local rank, whose descriptors are taken. `own` is this process's arena (null: none),
  // which is seen where it is mapped already.
  static std::unique_ptr<HostArenas> Map(std::vector<ArenaFile> files, int local_rank,
                                         const Arena* own);
  HostArenas(const HostArenas&) = delete;
  HostArenas& operator=(const HostArenas&) = delete;

  // Returns how much of every other arena can be seen here, from its beginning. 0: not all of them
  // can.
  uint64_t sees() const { return sees_; }
  // Sets how much all ranks of the host see: the least. Before the first Offer; otherwise it is as
  // much as is seen here.
  void Agree(uint64_t bytes) { offered_ = bytes; }
  // Where this process's tensor lies for the others, or -1: not in its arena, or where some rank
  // would not see it. All ranks of the host thus take the same way.
  int64_t Offer(const void* memory, size_t bytes) const {
    const int64_t at = own_ != nullptr ? own_->At(memory, bytes) : -1;
    return at >= 0 && static_cast<uint64_t>(at) + bytes <= offered_ ? at : -1;
  }
  // The tensor that `local_rank` offered, here. Null when the rank has no such memory, or, in spite
  // of what was agreed, there is no address space for it: `why` says which.
  std::byte* Address(int local_rank, int64_t offset, size_t bytes, MapRefusal* why) const;
  std::byte* Address(int local_rank, int64_t offset, size_t bytes = 0) const {
    MapRefusal why;
    return Address(local_rank, offset, bytes, &why);
  }
  uint64_t mapped_bytes() const;  // of the others'

 private:
  struct Peer {
    Descriptor file;
    std::unique_ptr<GrowingMap> map;  // null: there is no arena
  };
  HostArenas(int local_rank, const Arena* own) : local_rank_(local_rank), own_(own) {}

  const int local_rank_;
  const Arena* const own_;
  uint64_t sees_ = 0, offered_ = 0;
  std::vector<Peer> peers_;  // by local rank; nothing of this process's own
};

}  // namespace hvd::rt
