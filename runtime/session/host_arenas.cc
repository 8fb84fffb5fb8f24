// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/host_arenas.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/session/apart.h"

namespace hvd {
namespace {

// Whether reading or writing the first `bytes` can never be answered with SIGBUS.
bool CannotShrinkBelow(int fd, uint64_t bytes) {
  struct stat info {};
  const int seals = fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && fstat(fd, &info) == 0 &&
         static_cast<uint64_t>(info.st_size) >= bytes;
}

// A process that counts its address space needs most of it for itself.
bool FitsTheLimit(const std::vector<ArenaFile>& files) {
  struct rlimit limit {};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return true;
  uint64_t left = limit.rlim_cur / 2;
  for (const ArenaFile& file : files) {
    if (file.bytes > left) return false;
    left -= file.bytes;
  }
  return true;
}

// Each rank's differs from all others'.
int PlaceOf(int peer, int local_rank) {
  return kOwnArenaPlace + (peer < local_rank ? peer + 1 : peer);
}

}  // namespace

bool HostArenas::MapOne(const ArenaFile& file, int place, Mapping* mapping) {
  if (!CannotShrinkBelow(file.fd, file.bytes)) return false;
  void* address = MapAtPlace(file.fd, file.bytes, place);
  if (address == nullptr) return false;
  madvise(address, file.bytes, MADV_HUGEPAGE);
  madvise(address, file.bytes, MADV_DONTDUMP);
  madvise(address, file.bytes, MADV_DONTFORK);  // a forked child has no business there
  *mapping = {static_cast<std::byte*>(address), file.bytes};
  return true;
}

std::unique_ptr<HostArenas> HostArenas::Map(std::vector<ArenaFile> files, int local_rank,
                                            const Arena* own) {
  std::unique_ptr<HostArenas> arenas(new HostArenas(local_rank, own));
  arenas->mappings_.resize(files.size());
  arenas->complete_ = FitsTheLimit(files);
  for (size_t rank = 0; rank < files.size(); ++rank) {
    const ArenaFile& file = files[rank];
    const bool peer = static_cast<int>(rank) != local_rank && file.bytes > 0;
    if (peer && arenas->complete_) {
      arenas->complete_ = arenas->MapOne(file, PlaceOf(static_cast<int>(rank), local_rank),
                                         &arenas->mappings_[rank]);
    }
    if (file.fd >= 0) close(file.fd);
  }
  return arenas;
}

HostArenas::~HostArenas() {
  for (const Mapping& mapping : mappings_) {
    if (mapping.base != nullptr) munmap(mapping.base, mapping.bytes);
  }
}

std::byte* HostArenas::Address(int local_rank, int64_t offset, size_t bytes) const {
  if (offset < 0) return nullptr;
  if (local_rank == local_rank_) {
    std::byte* base = own_ != nullptr ? own_->base() : nullptr;
    return base != nullptr && own_->At(base + offset, bytes) == offset ? base + offset : nullptr;
  }
  const Mapping& mapping = mappings_[local_rank];
  const auto at = static_cast<uint64_t>(offset);
  if (mapping.base == nullptr || at > mapping.bytes || bytes > mapping.bytes - at) return nullptr;
  return mapping.base + at;
}

}  // namespace hvd
