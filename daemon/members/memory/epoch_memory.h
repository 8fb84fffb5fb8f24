// SPDX-License-Identifier: Apache-2.0
// An epoch's host memory: a sparse memfd with the HostPage at its front, in which the ranks take
// what they need, and the event fds of the doorbell. Made here, mapped by the workers; it ends with
// its last descriptor, so nothing can be left behind.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/descriptor.h"
#include "daemon/members/memory/abort_word.h"
#include "daemon/members/memory/rank_progress.h"
#include "proto/page/host_page.h"

namespace hvd::daemon {

struct EpochShape {
  uint64_t epoch = 0;
  std::vector<int> slots;              // of its ranks, in the order of their local ranks
  std::vector<uint64_t> members = {};  // in these slots; their next ones are none of it
  std::vector<int> ranks = {};         // in the epoch, by local rank
  bool several_hosts = false;          // then each local rank sleeps on an event fd
};

class EpochMemory {
 public:
  static absl::StatusOr<std::shared_ptr<EpochMemory>> Create(const EpochShape& shape);
  ~EpochMemory();
  EpochMemory(const EpochMemory&) = delete;
  EpochMemory& operator=(const EpochMemory&) = delete;

  // `bytes` are what all ranks map at first, with the page: the rest is theirs to take.
  absl::Status SetFirst(uint64_t bytes);

  int local_size() const { return static_cast<int>(shape_.slots.size()); }
  int rank_of(int local_rank) const { return shape_.ranks[local_rank]; }
  bool several_hosts() const { return shape_.several_hosts; }
  const std::vector<int>& slots() const { return shape_.slots; }
  int slot_of(int local_rank) const { return shape_.slots[local_rank]; }
  bool IsOf(uint64_t member, int local_rank) const { return shape_.members[local_rank] == member; }
  // -1: that slot's member is not in the epoch.
  int LocalRankOf(int slot) const;

  // By one thread; the first cause sticks, whatever a rank has begun to say.
  void Abort(const std::string& cause);
  AbortWord aborted() const;  // empty while the epoch lives
  // "waiting in allreduce 'grad.3' …; 12 collectives done".
  std::string Activity(int local_rank) const;
  // The ranks fill their timelines from now on, or stop.
  void SetTracing(bool on);
  // Appends what a rank has added to its timeline: at most `room` bytes.
  void TakeTrace(int local_rank, size_t room, std::string* out);
  // The epoch's members are to change: the next commit or check says so.
  void SetChange() { page_->change.store(1, std::memory_order_release); }
  // Asks the ranks what they have pending; they answer within some milliseconds unless they are
  // busy or have nothing.
  uint32_t Ask();
  // Whether some rank, or its device, has something to do.
  bool AnyUnderWay() const;
  // Whether the rank itself has, in any process set or in the one of a region.
  bool HasPending(int local_rank) const;
  bool HasPending(int local_rank, int region) const;
  // Returns the progress of all ranks that have something under way, in each process set.
  std::vector<RankProgress> Progress() const;
  struct SetMessages {
    int set = 0;
    std::vector<MessageCount> counts;
  };
  std::vector<SetMessages> Messages(int local_rank) const;
  bool Answer(int local_rank, int region, uint32_t question, PendingList* list) const;
  // Returns the counts of a rank in this epoch, over all process sets.
  RankTotals Counts(int local_rank) const;
  // Returns the descriptors that a worker gets: the memory, then the event fds.
  std::vector<int> Descriptors() const;

 private:
  explicit EpochMemory(EpochShape shape) : shape_(std::move(shape)) {}

  const EpochShape shape_;
  uint64_t file_bytes_ = 0;
  Descriptor memory_;
  HostPage* page_ = nullptr;
  std::vector<int> event_fds_;
  std::vector<TraceCursor> traces_;  // by local rank
};

}  // namespace hvd::daemon
