// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/host_arenas.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/page/memory_limits.h"
#include "runtime/session/apart.h"

namespace hvd::rt {
namespace {

// Whether reading or writing the first `bytes` can never be answered with SIGBUS.
bool CannotShrinkBelow(int fd, uint64_t bytes) {
  struct stat info {};
  const int seals = fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && fstat(fd, &info) == 0 &&
         static_cast<uint64_t>(info.st_size) >= bytes;
}

// How much address space each of so many others' arenas may take: where this process counts it,
// most is for the process itself.
uint64_t RoomForEach(uint64_t others) {
  struct rlimit limit {};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  const uint64_t used = ReadMemoryLimits(0).mapped;
  const uint64_t left = limit.rlim_cur > used ? limit.rlim_cur - used : 0;
  return left / 2 / others / ArenaSpace::kHugePage * ArenaSpace::kHugePage;
}

// Each rank's differs from all others'.
int PlaceOf(int peer, int local_rank) {
  return kOwnArenaPlace + (peer < local_rank ? peer + 1 : peer);
}

}  // namespace

std::unique_ptr<HostArenas> HostArenas::Map(std::vector<ArenaFile> files, int local_rank,
                                            const Arena* own) {
  std::unique_ptr<HostArenas> arenas(new HostArenas(local_rank, own));
  arenas->peers_.resize(files.size());
  for (size_t rank = 0; rank < files.size(); ++rank)
    arenas->peers_[rank].file.Reset(files[rank].fd);
  uint64_t others = 0;
  bool complete = true;
  for (size_t rank = 0; rank < files.size(); ++rank) {
    const ArenaFile& file = files[rank];
    Peer& peer = arenas->peers_[rank];
    if (static_cast<int>(rank) == local_rank || file.bytes == 0) {
      peer.file.Reset();
      continue;
    }
    ++others;
    complete = complete && CannotShrinkBelow(file.fd, file.bytes);
    if (!complete) continue;
    peer.map = std::make_unique<GrowingMap>(GrowingMap::InChildren::kGone);
    peer.map->SetFile({file.fd, file.bytes, PlaceOf(static_cast<int>(rank), local_rank)});
  }
  arenas->sees_ = !complete ? 0 : others == 0 ? UINT64_MAX : RoomForEach(others);
  arenas->offered_ = arenas->sees_;
  return arenas;
}

std::byte* HostArenas::Address(int local_rank, int64_t offset, size_t bytes,
                               MapRefusal* why) const {
  *why = {};
  if (offset < 0) return nullptr;
  if (local_rank == local_rank_) return own_ != nullptr ? own_->Find(offset, bytes) : nullptr;
  GrowingMap* const map = peers_[static_cast<size_t>(local_rank)].map.get();
  return map != nullptr ? map->Show(static_cast<uint64_t>(offset), bytes, why) : nullptr;
}

uint64_t HostArenas::mapped_bytes() const {
  uint64_t bytes = 0;
  for (const Peer& peer : peers_) bytes += peer.map != nullptr ? peer.map->mapped_bytes() : 0;
  return bytes;
}

}  // namespace hvd::rt
