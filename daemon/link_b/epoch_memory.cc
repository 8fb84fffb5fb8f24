#include "daemon/link_b/epoch_memory.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/remedy.h"

namespace hvd {
namespace {

absl::Status Failed(const EpochShape& shape, absl::string_view what) {
  return absl::ResourceExhaustedError(
      absl::StrCat("hvdd cannot make the host memory of epoch ", shape.epoch, " (", shape.bytes,
                   " bytes): ", what, ": ", strerrordesc_np(errno), RemedyFor(errno)));
}

}  // namespace

absl::StatusOr<std::shared_ptr<EpochMemory>> EpochMemory::Create(const EpochShape& shape) {
  if (shape.bytes < kHostPageBytes || shape.bytes > INT64_MAX) {
    return absl::InvalidArgumentError(absl::StrCat("a rank asks for ", shape.bytes,
                                                   " bytes of host memory; at least ",
                                                   kHostPageBytes, " are needed"));
  }
  std::shared_ptr<EpochMemory> memory(new EpochMemory);
  memory->memory_.Reset(memfd_create("hvd-epoch", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const int fd = memory->memory_.get();
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(shape.bytes)) != 0) return Failed(shape, "memfd");
  // A worker that shrank it would kill the others with SIGBUS.
  fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  void* address = mmap(nullptr, kHostPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) return Failed(shape, "mmap");
  memory->page_ = new (address) HostPage;
  memory->page_->local_size = shape.local_size;
  memory->page_->bytes = shape.bytes;
  memory->page_->epoch = shape.epoch;
  memory->traces_.resize(shape.local_size);
  for (int rank = 0; shape.several_hosts && rank < shape.local_size; ++rank) {
    const int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (event < 0) return Failed(shape, "eventfd");
    memory->event_fds_.push_back(event);
  }
  return memory;
}

EpochMemory::~EpochMemory() {
  if (page_ != nullptr) munmap(page_, kHostPageBytes);
  for (const int fd : event_fds_) close(fd);
}

void EpochMemory::Abort(const std::string& cause) {
  // The doorbell trusts the page's size; a worker may have scribbled over it.
  if (!event_fds_.empty()) page_->local_size = static_cast<uint32_t>(event_fds_.size());
  AbortEpoch(page_, cause.c_str(), event_fds_.empty() ? nullptr : event_fds_.data());
}

AbortWord EpochMemory::aborted() const {
  if (page_->aborted.load(std::memory_order_acquire) == 0) return {};
  std::string cause(page_->abort_text, strnlen(page_->abort_text, sizeof(page_->abort_text)));
  if (cause.empty()) cause = "the epoch was aborted";  // an empty one would mean that it was not
  return {std::move(cause), page_->abort_rank.load(std::memory_order_relaxed)};
}

std::string EpochMemory::Activity(int local_rank) const {
  const RankActivity& activity = page_->activity[local_rank];
  char last[sizeof(activity.last) + 1] = {};
  memcpy(last, activity.last, sizeof(activity.last));  // torn at worst
  const uint64_t calls = activity.calls.load(std::memory_order_relaxed);
  const uint64_t pending = activity.pending.load(std::memory_order_relaxed);
  const std::string done = absl::StrCat(calls, " collectives done");
  const std::string what = last[0] == '\0' ? "" : last;
  switch (activity.state.load(std::memory_order_relaxed)) {
    case RankState::kWaiting:
      if (pending == 0) break;  // it listens for its host, and waits for nothing of its own
      return absl::StrCat("waiting in ", what.empty() ? "a collective" : what, "; ", done,
                          pending > 1 ? absl::StrCat(", ", pending, " pending") : "");
    case RankState::kLeft:
      return absl::StrCat("had left the epoch; ", done);
    case RankState::kIdle:
    case RankState::kOutside:
      break;
  }
  if (what.empty()) return "had joined; no collective yet";
  return absl::StrCat("outside any collective, last ", what, "; ", done);
}

void EpochMemory::SetTracing(bool on) { page_->tracing.store(on ? 1 : 0); }

void EpochMemory::TakeTrace(int local_rank, size_t room, std::string* out) {
  DrainRing(&WatchOf(page_, local_rank).trace, &traces_[local_rank], local_rank, room, out);
}

uint32_t EpochMemory::Ask() {
  const uint32_t question = page_->question.fetch_add(1) + 1;
  Ring(&page_->bell, event_fds_.empty() ? nullptr : event_fds_.data(),
       static_cast<int>(traces_.size()));
  return question;
}

bool EpochMemory::HasPending(int local_rank) const {
  for (int region = 0; region < kWatchedSets; ++region) {
    const RankActivity& activity = ActivityAt({page_, local_rank, region});
    if (activity.pending.load(std::memory_order_relaxed) != 0) return true;
  }
  return false;
}

bool EpochMemory::AnyPending() const {
  for (size_t rank = 0; rank < traces_.size(); ++rank) {
    if (HasPending(static_cast<int>(rank))) return true;
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

}  // namespace hvd
