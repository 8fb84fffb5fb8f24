// SPDX-License-Identifier: Apache-2.0
#include "daemon/members/memory/epoch_memory.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/printable.h"
#include "proto/page/memory_limits.h"

namespace hvd::daemon {
namespace {

absl::Status Failed(uint64_t epoch, absl::string_view what, uint64_t bytes) {
  const int error = errno;
  return absl::ResourceExhaustedError(absl::StrCat("hvdd cannot make the host memory of epoch ",
                                                   epoch, " (", bytes, " bytes): ", what, ": ",
                                                   WhyRefused(bytes, ReadMemoryLimits(error))));
}

// Returns the collective that a rank has asked for last; torn at worst.
std::string LastOf(const RankActivity& activity) {
  return Printable(std::string_view(activity.last, strnlen(activity.last, sizeof(activity.last))));
}

std::string SetOf(const RankActivity& activity) {
  const int set = activity.set.load(std::memory_order_relaxed);
  return set == 0 ? "" : absl::StrCat(" (process set ", set, ")");
}

// Empty: the rank has nothing under way in this process set.
std::string DoingItself(const RankActivity& activity) {
  const std::string where = SetOf(activity);
  const WorkSeen work = ReadWork(activity.work);
  if (work.number != 0) return absl::StrCat("in ", Printable(work.text), where);
  const uint64_t pending = activity.pending.load(std::memory_order_relaxed);
  if (pending == 0) return "";  // it may listen for its host
  const std::string last = LastOf(activity);
  const std::string what = last.empty() ? "a collective" : last;
  // Something else of the program runs, with collectives under way beside it.
  if (activity.callers.load(std::memory_order_relaxed) == 0) {
    return absl::StrCat("outside any call, last ", what, where, ", which is under way");
  }
  const bool waits = activity.state.load(std::memory_order_relaxed) == RankState::kWaiting;
  return absl::StrCat(waits ? "waiting in " : "in ", what, where);
}

// … nor has its device.
std::string Doing(const RankActivity& activity) {
  const std::string itself = DoingItself(activity);
  const WorkSeen device = ReadWork(activity.device);
  if (device.number == 0) return itself;
  const std::string on_device = absl::StrCat("its device works on ", Printable(device.text));
  return itself.empty() ? absl::StrCat(on_device, SetOf(activity))
                        : absl::StrCat(itself, ", ", on_device);
}

RankProgress OfDevice(const WorkSeen& device) {
  RankProgress progress;
  progress.on_device = true;
  progress.what = Printable(device.text);
  progress.work = device.number;
  return progress;
}

RankProgress OfRank(const RankActivity& activity) {
  const WorkSeen work = ReadWork(activity.work);
  RankProgress progress;
  progress.what = work.number != 0 ? Printable(work.text) : LastOf(activity);
  progress.work = work.number;
  progress.moves = activity.moves.load(std::memory_order_relaxed);
  progress.calls = activity.calls.load(std::memory_order_relaxed);
  return progress;
}

}  // namespace

absl::StatusOr<std::shared_ptr<EpochMemory>> EpochMemory::Create(const EpochShape& shape) {
  std::shared_ptr<EpochMemory> memory(new EpochMemory(shape));
  const int local_size = memory->local_size();
  const size_t page_bytes = HostPageBytes(local_size);
  memory->memory_.Reset(memfd_create("hvd-epoch", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const int fd = memory->memory_.get();
  memory->file_bytes_ = std::max<uint64_t>(HostFileBytes(), page_bytes);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(memory->file_bytes_)) != 0) {
    return Failed(shape.epoch, "memfd", page_bytes);
  }
  // A worker that shrank it would kill the others with SIGBUS.
  fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  void* address = mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) return Failed(shape.epoch, "mmap", page_bytes);
  madvise(address, page_bytes, MADV_DONTDUMP);
  memory->page_ = MakeHostPage(address, {shape.epoch, local_size, memory->file_bytes_, page_bytes});
  memory->traces_.resize(local_size);
  for (int rank = 0; shape.several_hosts && rank < local_size; ++rank) {
    const int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (event < 0) return Failed(shape.epoch, "eventfd", 0);
    memory->event_fds_.push_back(event);
  }
  return memory;
}

absl::Status EpochMemory::SetFirst(uint64_t bytes) {
  const size_t page_bytes = HostPageBytes(local_size());
  if (bytes < page_bytes || bytes > kHostFileBytes) {
    return absl::InvalidArgumentError(absl::StrCat("a rank asks for ", bytes,
                                                   " bytes of host memory; ", page_bytes, " to ",
                                                   kHostFileBytes, " can be had"));
  }
  if (bytes > file_bytes_) {
    errno = EFBIG;
    return Failed(shape_.epoch, "memfd", bytes);
  }
  page_->taken = (bytes + 4095) / 4096 * 4096;
  return absl::OkStatus();
}

int EpochMemory::LocalRankOf(int slot) const {
  const auto found = std::find(shape_.slots.begin(), shape_.slots.end(), slot);
  return found == shape_.slots.end() ? -1 : static_cast<int>(found - shape_.slots.begin());
}

EpochMemory::~EpochMemory() {
  if (page_ != nullptr) munmap(page_, HostPageBytes(static_cast<int>(traces_.size())));
  for (const int fd : event_fds_) close(fd);
}

void EpochMemory::Abort(const std::string& cause) {
  // The doorbell trusts the page's size; a worker may have scribbled over it.
  if (!event_fds_.empty()) page_->local_size = static_cast<uint32_t>(event_fds_.size());
  AbortEpochAsDaemon(page_, {cause.c_str()}, event_fds_.empty() ? nullptr : event_fds_.data());
}

AbortWord EpochMemory::aborted() const {
  if (page_->aborted.load(std::memory_order_acquire) == 0) return {};
  const AbortCause told = CauseOf(*page_);
  std::string cause(told.text, strnlen(told.text, sizeof(AbortNote::text)));
  if (cause.empty()) cause = "the epoch was aborted";  // an empty one would mean that it was not
  return {Printable(cause), told.rank, told.unreached};
}

std::string EpochMemory::Activity(int local_rank) const {
  const RankActivity& whole = page_->activity[local_rank];
  const uint64_t calls = whole.calls.load(std::memory_order_relaxed);
  const std::string done = absl::StrCat("; ", calls, " collectives done");
  if (whole.state.load(std::memory_order_relaxed) == RankState::kLeft) {
    return "had left the epoch" + done;
  }
  for (int region = 0; region < kWatchedSets; ++region) {
    const RankActivity& activity = ActivityAt({page_, local_rank, region});
    const std::string doing = Doing(activity);
    if (doing.empty()) continue;
    const uint64_t pending = activity.pending.load(std::memory_order_relaxed);
    return absl::StrCat(doing, done, pending > 1 ? absl::StrCat(", ", pending, " pending") : "");
  }
  const std::string last = LastOf(whole);
  return last.empty() ? "had joined; no collective yet"
                      : absl::StrCat("outside any collective, last ", last, done);
}

std::vector<RankProgress> EpochMemory::Progress() const {
  std::vector<RankProgress> ranks;
  for (int rank = 0; rank < static_cast<int>(traces_.size()); ++rank) {
    for (int region = 0; region < kWatchedSets; ++region) {
      const RankActivity& activity = ActivityAt({page_, rank, region});
      const auto add = [&](RankProgress progress) {
        progress.local_rank = rank;
        progress.set = activity.set.load(std::memory_order_relaxed);
        ranks.push_back(std::move(progress));
      };
      const WorkSeen device = ReadWork(activity.device);
      if (device.number != 0) add(OfDevice(device));
      if (activity.pending.load(std::memory_order_relaxed) != 0) add(OfRank(activity));
    }
  }
  return ranks;
}

std::vector<EpochMemory::SetMessages> EpochMemory::Messages(int local_rank) const {
  std::vector<SetMessages> messages;
  for (int region = 0; region < kWatchedSets; ++region) {
    const int set = ActivityAt({page_, local_rank, region}).set.load(std::memory_order_relaxed);
    messages.push_back({set, WatchOf(page_, local_rank).messages[region].Read()});
  }
  return messages;
}

void EpochMemory::SetTracing(bool on) { page_->tracing.store(on ? 1 : 0); }

void EpochMemory::TakeTrace(int local_rank, size_t room, std::string* out) {
  DrainRing(&WatchOf(page_, local_rank).trace, &traces_[local_rank], local_rank, room, out);
}

uint32_t EpochMemory::Ask() {
  uint32_t question = page_->question.fetch_add(1) + 1;
  if (question == 0) question = page_->question.fetch_add(1) + 1;  // 0 is no question
  Ring(&page_->bell, event_fds_.empty() ? nullptr : event_fds_.data(),
       static_cast<int>(traces_.size()));
  return question;
}

bool EpochMemory::HasPending(int local_rank, int region) const {
  const RankActivity& activity = ActivityAt({page_, local_rank, region});
  return activity.pending.load(std::memory_order_relaxed) != 0;
}

bool EpochMemory::HasPending(int local_rank) const {
  for (int region = 0; region < kWatchedSets; ++region) {
    if (HasPending(local_rank, region)) return true;
  }
  return false;
}

bool EpochMemory::AnyUnderWay() const {
  for (int rank = 0; rank < static_cast<int>(traces_.size()); ++rank) {
    for (int region = 0; region < kWatchedSets; ++region) {
      if (HasPending(rank, region)) return true;
      const RankActivity& activity = ActivityAt({page_, rank, region});
      if (activity.device.number.load(std::memory_order_relaxed) != 0) return true;
    }
  }
  return false;
}

bool EpochMemory::Answer(int local_rank, int region, uint32_t question, PendingList* list) const {
  return ReadPending(WatchOf(page_, local_rank).pending[region], question, list);
}

RankTotals EpochMemory::Counts(int local_rank) const {
  RankTotals totals = {};
  for (const RankMetrics& metrics : WatchOf(page_, local_rank).metrics) totals.Add(metrics);
  return totals;
}

std::vector<int> EpochMemory::Descriptors() const {
  std::vector<int> fds{memory_.get()};
  fds.insert(fds.end(), event_fds_.begin(), event_fds_.end());
  return fds;
}

}  // namespace hvd::daemon
