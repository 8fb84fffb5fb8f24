// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/arena.h"

#include <fcntl.h>
#include <sys/mman.h>  // memfd_create
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/page/memory_limits.h"
#include "runtime/session/apart.h"

namespace hvd::rt {
namespace {

// All arenas of a host are seen by all its ranks: 128 of these fit in half of an address space.
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

// As much as the host has memory, for the file is sparse and mapped as it is used; less where a
// limit of this process counts address space (the peers' arenas take some, too) or files' sizes.
uint64_t FittingBytes() {
  const uint64_t memory =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t bytes = std::min({memory, kMostBytes, Limit(RLIMIT_AS) / 4, Limit(RLIMIT_FSIZE)});
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
  auto space = std::make_unique<ArenaSpace>(bytes);
  const int fd = memfd_create("hvd-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  // Sealed, so that no rank can shrink it and kill the others with SIGBUS.
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0 ||
      fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    file_status_ = Refused("memfd");
    if (fd >= 0) close(fd);
    return file_status_;
  }
  space_ = std::move(space);
  map_.SetFile({fd, bytes, kOwnArenaPlace});
  file_ = {fd, bytes};
  return file_status_;
}

ArenaFile Arena::Share() {
  const MutexLock lock(&mutex_);
  return MakeFile().ok() ? file_ : ArenaFile{};
}

absl::StatusOr<void*> Arena::Allocate(size_t bytes) {
  const MutexLock lock(&mutex_);
  if (absl::Status made = MakeFile(); !made.ok()) return made;
  const auto offset = space_->Take(bytes);
  if (!offset) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "hvd_alloc: no ", bytes, " bytes left in this process's arena of ", space_->bytes(),
        " bytes, ", space_->taken(), " of them in use; free some, or use other memory"));
  }
  MapRefusal refused;
  if (std::byte* memory = map_.Show(*offset, bytes, &refused); memory != nullptr) return memory;
  space_->Give(static_cast<uint64_t>(*offset));
  return absl::ResourceExhaustedError(
      absl::StrCat("hvd_alloc: cannot map memory for ", SayBytes(bytes), ": ",
                   WhyRefused(refused.bytes, ReadMemoryLimits(refused.error))));
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

}  // namespace hvd::rt
