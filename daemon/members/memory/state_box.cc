// SPDX-License-Identifier: Apache-2.0
#include "daemon/members/memory/state_box.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "proto/page/memory_limits.h"

namespace hvd::daemon {

StateBox::File::~File() {
  if (head_ != nullptr) munmap(head_, sizeof(StateHead));
}

absl::Status StateBox::File::Make() {
  file_.Reset(memfd_create("hvd-state", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  // A worker that shrank it would kill the others, and hvdd, with SIGBUS.
  if (file_.valid() && fcntl(file_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) == 0) {
    // Now, where it can be told: a file that cannot be looked at later would pass for an empty one,
    // and what is committed in it for lost.
    void* const address =
        mmap(nullptr, sizeof(StateHead), PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
    if (address != MAP_FAILED) {
      head_ = static_cast<StateHead*>(address);
      return absl::OkStatus();
    }
  }
  const int error = errno;
  file_.Reset();
  return absl::ResourceExhaustedError(
      absl::StrCat("hvdd cannot make a file for committed state: ",
                   WhyRefused(sizeof(StateHead), ReadMemoryLimits(error))));
}

StateHead* StateBox::File::Head() {
  struct stat about {};
  const bool is_written =
      fstat(file_.get(), &about) == 0 && about.st_size >= static_cast<off_t>(kStateContentsAt);
  return is_written ? head_ : nullptr;
}

absl::Status StateBox::MakeBoth(std::unique_ptr<Pair>* pair) {
  if (*pair != nullptr) return absl::OkStatus();
  auto made = std::make_unique<Pair>();
  for (File& file : *made) {
    absl::Status status = file.Make();
    if (!status.ok()) return status;
  }
  *pair = std::move(made);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int>> StateBox::FilesOf(int share) {
  std::unique_ptr<Pair>& own = by_share_[share];
  for (std::unique_ptr<Pair>* pair : {&host_, &own}) {
    const absl::Status made = MakeBoth(pair);
    if (!made.ok()) return made;
  }
  return std::vector<int>{(*host_)[0].fd(), (*host_)[1].fd(), (*own)[0].fd(), (*own)[1].fd()};
}

KeptCommits StateBox::Kept() {
  if (host_ == nullptr) return {};
  return KeptIn((*host_)[0].Head(), (*host_)[1].Head());
}

void StateBox::VoidBeyond(uint64_t number) {
  const auto void_both = [number](Pair* pair) {
    for (File& file : *pair) {
      if (StateHead* const head = file.Head(); head != nullptr) VoidStateBeyond(head, number);
    }
  };
  if (host_ != nullptr) void_both(host_.get());
  for (const auto& [share, pair] : by_share_) {
    if (pair != nullptr) void_both(pair.get());
  }
}

}  // namespace hvd::daemon
