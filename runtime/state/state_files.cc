// SPDX-License-Identifier: Apache-2.0
#include "runtime/state/state_files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "proto/page/memory_limits.h"

namespace hvd::rt {
namespace {

constexpr uint64_t kPage = 4096;
constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, which older headers lack
// Mappings grow by so much at least, so that growing bytes do not move them each time.
constexpr uint64_t kMapStep = uint64_t{1} << 20;

uint64_t RoundUp(uint64_t bytes, uint64_t step) { return (bytes + step - 1) / step * step; }

uint64_t MostBytesOfFile() {
  struct rlimit limit {};
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

absl::Status NoMemory(uint64_t bytes, int error) {
  return absl::ResourceExhaustedError(
      absl::StrCat("the host's copy of the state: ", WhyRefused(bytes, ReadMemoryLimits(error))));
}

}  // namespace

absl::StatusOr<std::unique_ptr<StateFile>> StateFile::Take(Descriptor fd) {
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  std::unique_ptr<StateFile> file(new StateFile(std::move(fd)));
  if (seals >= 0 && (seals & F_SEAL_SHRINK) != 0) return file;
  return absl::FailedPreconditionError(
      "a file for commits that is not sealed against shrinking; hvdd and libhvd do not fit "
      "together: install one version on all hosts");
}

absl::StatusOr<std::unique_ptr<StateFile>> StateFile::MakeOwn() {
  Descriptor fd(memfd_create("hvd-state", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid() || fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
    return NoMemory(kPage, errno);
  }
  return Take(std::move(fd));
}

StateFile::~StateFile() {
  if (base_ != nullptr) munmap(base_, mapped_);
}

absl::StatusOr<uint64_t> StateFile::Size() const {
  struct stat found {};
  if (fstat(fd_.get(), &found) != 0) return NoMemory(kPage, errno);
  return static_cast<uint64_t>(found.st_size);
}

// Another rank may grow it at the same time, and further: then the seal refuses the smaller size.
absl::Status StateFile::Grow(uint64_t bytes) {
  bytes = RoundUp(bytes, kMapStep);
  for (;;) {
    const absl::StatusOr<uint64_t> size = Size();
    if (!size.ok()) return size.status();
    if (*size >= bytes) break;
    // Beyond a limit of files' sizes the system would end the program (SIGXFSZ).
    if (MostBytesOfFile() < bytes) return NoMemory(bytes, EFBIG);
    if (ftruncate(fd_.get(), static_cast<off_t>(bytes)) == 0) break;
    if (errno != EPERM && errno != EINTR) return NoMemory(bytes, errno);
  }
  return Map(bytes);
}

absl::Status StateFile::Map(uint64_t bytes) {
  if (bytes <= mapped_) return absl::OkStatus();
  void* const base = base_ == nullptr
                         ? mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0)
                         : mremap(base_, mapped_, bytes, MREMAP_MAYMOVE);
  if (base == MAP_FAILED) return NoMemory(bytes, errno);
  base_ = static_cast<std::byte*>(base);
  mapped_ = bytes;
  (void)madvise(base_, mapped_, MADV_DONTDUMP);  // a dump would hold the state twice more
  (void)madvise(base_, mapped_, MADV_HUGEPAGE);  // where the host allows it for shared memory
  (void)madvise(base_, mapped_, MADV_DONTFORK);
  return absl::OkStatus();
}

// A kernel before 5.14 cannot: then pages come when they are written, as all memory does.
absl::Status StateFile::Populate(uint64_t begin, uint64_t end) {
  if (begin >= end) return absl::OkStatus();
  for (const Range& there : populated_) {
    if (there.begin <= begin && end <= there.end) return absl::OkStatus();
  }
  const uint64_t first = begin / kPage * kPage, last = RoundUp(end, kPage);
  while (madvise(base_ + first, last - first, kPopulateWrite) != 0) {
    if (errno == EINVAL) break;
    if (errno != EINTR && errno != EAGAIN) return NoMemory(last - first, errno);
  }
  for (Range& there : populated_) {
    if (end < there.begin || there.end < begin) continue;
    there = {std::min(there.begin, begin), std::max(there.end, end)};
    return absl::OkStatus();
  }
  populated_.push_back({begin, end});
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> StateFile::MapFirst(uint64_t bytes) {
  absl::StatusOr<uint64_t> size = Size();
  if (!size.ok() || *size == 0) return size;
  absl::Status mapped = Map(std::min(*size, RoundUp(bytes, kMapStep)));
  if (!mapped.ok()) return mapped;
  return size;
}

absl::StatusOr<StateFiles> StateFiles::Take(std::vector<Descriptor> descriptors) {
  std::vector<std::unique_ptr<StateFile>> files;
  files.reserve(descriptors.size());
  for (Descriptor& fd : descriptors) {
    auto file = StateFile::Take(std::move(fd));
    if (!file.ok()) return file.status();
    files.push_back(*std::move(file));
  }
  if (files.size() != 4) {
    return absl::InternalError(
        absl::StrCat("hvdd gave ", files.size(), " files for commits instead of 4"));
  }
  StateFiles all;
  all.host = {std::move(files[0]), std::move(files[1])};
  all.share = {std::move(files[2]), std::move(files[3])};
  return all;
}

absl::StatusOr<StateFiles> StateFiles::MakeOwn() {
  StateFiles all;
  for (auto* files : {&all.host, &all.share}) {
    for (std::unique_ptr<StateFile>& each : *files) {
      auto file = StateFile::MakeOwn();
      if (!file.ok()) return file.status();
      each = *std::move(file);
    }
  }
  return all;
}

}  // namespace hvd::rt
