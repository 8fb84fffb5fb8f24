// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "runtime/session/apart.h"

namespace hvd {
namespace {

// All arenas of a host are mapped by all its ranks: 128 of these fit in half of an address space.
constexpr uint64_t kMostBytes = uint64_t{512} << 30;
constexpr uint64_t kLeastBytes = uint64_t{64} << 20;
// Smaller freed pieces keep their pages: they are soon used again, and giving back costs 1 µs a
// page.
constexpr uint64_t kGiveBackBytes = uint64_t{1} << 20;

uint64_t Limit(__rlimit_resource resource) {
  struct rlimit limit {};
  return getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur
                                                                             : UINT64_MAX;
}

// As much as the host has memory, for the file is sparse; less where a limit of this process counts
// address space (the peers' arenas take as much each) or the size of files.
uint64_t FittingBytes() {
  const uint64_t memory =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t bytes = std::min({memory, kMostBytes, Limit(RLIMIT_AS) / 8, Limit(RLIMIT_FSIZE)});
  return bytes / ArenaSpace::kHugePage * ArenaSpace::kHugePage;
}

absl::Status NoArena(const std::string& why) {
  return absl::ResourceExhaustedError("hvd_alloc: this process can make no arena (" + why +
                                      "); use other memory for tensors, every operation takes it");
}

absl::Status Refused(const char* call) {
  return NoArena(std::string(call) + ": " + strerror(errno));
}

}  // namespace

Arena::~Arena() {
  if (std::byte* base = base_.load(); base != nullptr) munmap(base, mapped_);
  if (file_.fd >= 0) close(file_.fd);
}

absl::Status Arena::MakeFile() {
  if (file_.fd >= 0 || !file_status_.ok()) return file_status_;
  const uint64_t bytes = FittingBytes();
  if (bytes < kLeastBytes) {
    file_status_ =
        NoArena("its limits of address space or file sizes are too low, see ulimit -v -f");
    return file_status_;
  }
  const int fd = memfd_create("hvd-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  // Sealed, so that no rank can shrink it and kill the others with SIGBUS.
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0 ||
      fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    file_status_ = Refused("memfd");
    if (fd >= 0) close(fd);
    return file_status_;
  }
  file_ = {fd, bytes};
  return file_status_;
}

ArenaFile Arena::Share() {
  const MutexLock lock(&mutex_);
  return MakeFile().ok() ? file_ : ArenaFile{};
}

// As much of the file as the address space takes.
absl::Status Arena::Map() {
  if (absl::Status made = MakeFile(); !made.ok()) return made;
  for (uint64_t bytes = file_.bytes; bytes >= kLeastBytes; bytes /= 2) {
    void* address = MapAtPlace(file_.fd, bytes, kOwnArenaPlace);
    if (address == nullptr) continue;
    // Where the system's shmem_enabled lets it; a core file would fill the holes.
    madvise(address, bytes, MADV_HUGEPAGE);
    madvise(address, bytes, MADV_DONTDUMP);
    space_ = std::make_unique<ArenaSpace>(bytes);
    mapped_ = bytes;
    base_.store(static_cast<std::byte*>(address), std::memory_order_release);
    return absl::OkStatus();
  }
  return Refused("mmap");
}

absl::StatusOr<void*> Arena::Allocate(size_t bytes) {
  const MutexLock lock(&mutex_);
  if (base() == nullptr) {
    if (absl::Status mapped = Map(); !mapped.ok()) return mapped;
  }
  if (const auto offset = space_->Take(bytes)) return base() + *offset;
  return absl::ResourceExhaustedError(
      "hvd_alloc: no " + std::to_string(bytes) + " bytes left in this process's arena of " +
      std::to_string(space_->bytes()) + " bytes, " + std::to_string(space_->taken()) +
      " of them in use; free some, or use other memory");
}

absl::Status Arena::Free(void* memory) {
  if (memory == nullptr) return absl::OkStatus();
  const MutexLock lock(&mutex_);
  const int64_t offset = At(memory, 0);
  const auto given = offset >= 0 ? space_->Give(offset) : std::nullopt;
  if (!given) {
    return absl::InvalidArgumentError(
        offset >= 0 ? "hvd_free: nothing that is in use begins there; it was freed already, or the "
                      "pointer is not the one that hvd_alloc gave"
                    : "hvd_free: this memory is not of hvd_alloc");
  }
  if (given->bytes >= kGiveBackBytes) {
    // If it fails, the pages stay until the piece is used again: nothing else is lost.
    fallocate(file_.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              static_cast<off_t>(given->offset), static_cast<off_t>(given->bytes));
  }
  return absl::OkStatus();
}

void Arena::DetachChild() {
  std::byte* base = base_.load(std::memory_order_relaxed);
  if (base == nullptr) return;
  mmap(base, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, file_.fd, 0);
  madvise(base, mapped_, MADV_DONTDUMP);
}

}  // namespace hvd
