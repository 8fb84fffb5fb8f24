// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/host_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "proto/page/memory_limits.h"

namespace hvd::rt {
namespace {

size_t WholePages(size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

absl::Status Refused(const std::string& what, size_t bytes) {
  const int error = errno;
  return absl::ResourceExhaustedError(what + ": " + WhyRefused(bytes, ReadMemoryLimits(error)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<HostMemory>> HostMemory::Map(std::vector<int> descriptors,
                                                            size_t bytes) {
  if (descriptors.empty()) return absl::InternalError("hvdd granted an epoch without memory");
  const int fd = descriptors[0];
  descriptors.erase(descriptors.begin());
  std::unique_ptr<HostMemory> memory(new HostMemory(fd, std::move(descriptors)));
  if (absl::Status mapped = memory->MapFirst(bytes); !mapped.ok()) return mapped;
  const HostPage& page = *memory->page();
  if (page.magic != kHostPageMagic) {
    return absl::InternalError("the host's shared memory is not what hvdd promised");
  }
  if (page.bytes < bytes) {  // what lies behind its file's end cannot be touched
    errno = EFBIG;
    return Refused("hvdd cannot make the host's shared memory as large", bytes);
  }
  return memory;
}

absl::StatusOr<std::unique_ptr<HostMemory>> HostMemory::Alone(size_t bytes) {
  const int fd = memfd_create("hvd-alone", MFD_CLOEXEC);
  if (fd < 0) return Refused("cannot make this process's collective memory", bytes);
  std::unique_ptr<HostMemory> memory(new HostMemory(fd, {}));
  // Beyond a limit of files' sizes the system would end the program (SIGXFSZ).
  const uint64_t most = HostFileBytes();
  if (most < bytes) errno = EFBIG;
  if (most < bytes || ftruncate(fd, static_cast<off_t>(most)) != 0) {
    return Refused("cannot make this process's collective memory", bytes);
  }
  if (absl::Status mapped = memory->MapFirst(bytes); !mapped.ok()) return mapped;
  MakeHostPage(memory->first_.get(), {1, 1, most, WholePages(bytes)});
  return memory;
}

HostMemory::~HostMemory() {
  close(fd_);
  for (const int fd : event_fds_) close(fd);
}

absl::Status HostMemory::MapFirst(size_t bytes) {
  auto first = Map(0, bytes);
  if (first.ok()) first_ = *std::move(first);
  return first.status();
}

// The next bytes of the file. A rank that dies with a piece that it has told nobody of leaves a
// hole, which costs nothing.
absl::StatusOr<uint64_t> HostMemory::Take(size_t bytes) {
  bytes = WholePages(bytes);
  const uint64_t most = page()->bytes;
  uint64_t place = page()->taken.load();
  while (place <= most && bytes <= most - place) {
    if (page()->taken.compare_exchange_weak(place, place + bytes)) return place;
  }
  return absl::ResourceExhaustedError("the host's shared memory cannot grow by " + SayBytes(bytes) +
                                      ": its file may have " + SayBytes(most) +
                                      "; raise the limit of files' sizes (ulimit -f)");
}

absl::StatusOr<std::shared_ptr<std::byte>> HostMemory::Map(uint64_t place, size_t bytes) {
  void* address =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, static_cast<off_t>(place));
  if (address == MAP_FAILED) return Refused("cannot map the host's shared memory", bytes);
  // A core file would fill its holes, and say nothing that the page does not.
  madvise(address, bytes, MADV_DONTDUMP);
  return std::shared_ptr<std::byte>(static_cast<std::byte*>(address),
                                    [bytes](std::byte* at) { munmap(at, bytes); });
}

void HostMemory::Give(uint64_t place, size_t bytes) {
  // If it fails, the pages stay until the epoch ends: nobody gets them again.
  (void)fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(place),
                  static_cast<off_t>(WholePages(bytes)));
}

absl::StatusOr<uint64_t> HostMemory::PlaceOfRegion(int region, size_t bytes) {
  std::atomic<uint64_t>& at = page()->region_at[region];
  if (const uint64_t place = at.load(std::memory_order_acquire); place != 0) return place;
  const absl::StatusOr<uint64_t> mine = Take(bytes);
  if (!mine.ok()) return mine;
  uint64_t first = 0;
  return at.compare_exchange_strong(first, *mine) ? *mine : first;
}

void HostMemory::GiveRegion(int region, size_t bytes) {
  const uint64_t place = page()->region_at[region].exchange(0);
  if (place != 0) Give(place, bytes);
}

}  // namespace hvd::rt
