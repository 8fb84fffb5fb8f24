// SPDX-License-Identifier: Apache-2.0
#include "daemon/members/memory/arena_box.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "absl/strings/str_cat.h"

namespace hvd::daemon {

absl::Status ArenaBox::Check(const Descriptor& file, uint64_t bytes) {
  const int seals = fcntl(file.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return absl::InvalidArgumentError("its arena is no memfd that is sealed against shrinking");
  }
  struct stat info {};
  if (fstat(file.get(), &info) != 0 || static_cast<uint64_t>(info.st_size) < bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("its arena holds ", info.st_size, " bytes, not the ", bytes, " that it says"));
  }
  return absl::OkStatus();
}

std::vector<uint64_t> ArenaBox::Bytes() const {
  std::vector<uint64_t> bytes;
  for (const Arena& arena : arenas_) bytes.push_back(arena.bytes);
  return bytes;
}

std::vector<int> ArenaBox::Descriptors() const {
  std::vector<int> fds;
  for (const Arena& arena : arenas_) {
    if (arena.bytes > 0) fds.push_back(arena.file.get());
  }
  return fds;
}

}  // namespace hvd::daemon
