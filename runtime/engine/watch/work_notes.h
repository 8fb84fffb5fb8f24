// SPDX-License-Identifier: Apache-2.0
// Hears of an engine's work, and tells of it: to hvdd through the host's page (what this rank does,
// what it has pending); of what has run, to the metrics and the timeline (run_record.h). The
// events: a request comes, the counts change, a run begins and is over, the executor waits.
//
// Threads: by the annotations. A rank's activity is written by submitters under the engine's lock
// and by the executor, each its own words of it; hvdd reads them whenever it likes.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "runtime/engine/request/engine_lock.h"
#include "runtime/engine/request/local_name.h"
#include "runtime/engine/watch/launched_run.h"
#include "runtime/engine/watch/run_record.h"
#include "runtime/engine/watch/stall.h"

namespace hvd::rt {

struct WorkNotesPlace {
  WatchPlace watch;
  const std::vector<int>& members;  // global ranks of the set; empty: all
  int rank = 0;                     // this one's in the set
  bool several_hosts = false;
};

class WorkNotes {
 public:
  explicit WorkNotes(const WorkNotesPlace& place);

  // As messages name a rank of the set.
  int GlobalRank(int rank) const {
    return members_.empty() ? rank : members_[static_cast<size_t>(rank)];
  }
  int global_rank() const { return GlobalRank(rank_); }
  // The time now, or 0 while the timeline is off.
  int64_t Stamp() const { return runs_.Stamp(); }

  // How much is pending here, and how many of the program's threads are inside a call that waits. A
  // rank that waits in the program's call is in it, one that only has something under way is not.
  struct Counts {
    int pending = 0;
    int callers = 0;
  };
  // A request comes, beside so many. Before it is marked: others may see that this rank takes part
  // before it goes on here.
  void Comes(const Request& request, const Counts& counts)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  // One is done, and so many are not; or one that came has not been submitted after all.
  void Count(const Counts& counts) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) {
    activity_.pending.store(static_cast<uint64_t>(counts.pending), std::memory_order_relaxed);
    SetCallers(counts.callers);
  }
  // One has finished.
  void CountCall() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) {
    activity_.calls.store(activity_.calls.load(std::memory_order_relaxed) + 1,
                          std::memory_order_relaxed);
  }
  // Any thread.
  void SetCallers(int callers) {
    activity_.callers.store(static_cast<uint32_t>(callers), std::memory_order_relaxed);
  }
  // Answers hvdd's question with what is pending here. One thread at a time.
  void Answer(std::vector<PendingRequest> pending) { stall_.Give(std::move(pending)); }
  // The rank does nothing more in this set.
  void Leaves();

  // A run out of a batch begins; `first` is this rank's first request of that, null if only others
  // have it. Then it is over.
  void BeginRun(RequestKind kind, const Request* first, size_t tensors)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  void EndRun(bool broke) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  // The executor's part of a direct request begins, and is over.
  void BeginDirect(LocalName* name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor) {
    if (const int64_t now = Stamp(); now != 0) name->direct.begin_ns = now;
    at_work_ = name->name;
  }
  void EndDirect() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor) { at_work_ = nullptr; }
  // Takes the name that was being worked on when that threw; null: none.
  const std::string* TakeAtWork() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor) {
    return std::exchange(at_work_, nullptr);
  }
  // What has run is told to this.
  RunRecord& runs() { return runs_; }

  // Returns what is to be told of a run that goes to the device, as BeginRun has it; `requests` are
  // this rank's.
  LaunchedRun Launches(const RunTimes& times, absl::Span<Request* const> requests,
                       uint64_t threshold) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  // Notes the run that the device works on for the longest; null: nothing. Its number is that of
  // the launch.
  void SetDeviceWork(uint64_t number, const LaunchedRun* oldest)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);

  // The executor waits for others, from here to its end.
  class Wait {
   public:
    explicit Wait(WorkNotes* notes) : notes_(*notes) { notes_.SetState(RankState::kWaiting); }
    ~Wait() {
      if (begin_ns_ != 0) notes_.runs_.Waited(Timeline::Now() - begin_ns_);
      notes_.SetState(RankState::kIdle);
    }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;
    // A look has found nothing, while something is pending here. The wait is timed from the look
    // with which `looks` comes to 0: before, it is not worth two clock readings.
    void NoteLook(int* looks) {
      notes_.runs_.Waits();
      if (*looks > 0 && --*looks == 0) begin_ns_ = Timeline::Now();
    }

   private:
    WorkNotes& notes_;
    int64_t begin_ns_ = 0;
  };

 private:
  void SetState(RankState state) { activity_.state.store(state, std::memory_order_relaxed); }
  void Describe(LocalName* name, RequestKind kind) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  void DescribePair(const Request& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);

  const std::vector<int>& members_;
  const int rank_;
  RankActivity& activity_;
  RunRecord runs_;
  StallAnswer stall_;
  const LocalName* last_noted_ ABSL_GUARDED_BY(kEngineLock) = nullptr;  // on the page
  const std::string* at_work_ ABSL_GUARDED_BY(kExecutor) = nullptr;
  // The run that the page says this rank executes.
  struct NotedRun {
    uint64_t number = 0;
    const LocalName* first = nullptr;
    RequestKind kind = RequestKind::kLeave;
    size_t tensors = 0;
  } noted_run_ ABSL_GUARDED_BY(kExecutor);
};

}  // namespace hvd::rt
