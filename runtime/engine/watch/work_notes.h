// SPDX-License-Identifier: Apache-2.0
// Tells about an engine's work: to hvdd through the host's page (what this rank does, what it has
// pending), to the metrics and to the timeline.
//
// Threads: by the annotations. A rank's activity is written by submitters under the engine's lock
// and by the executor, each its own words of it; hvdd reads them whenever it likes.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/types/span.h"
#include "runtime/engine/request/engine_lock.h"
#include "runtime/engine/request/local_name.h"
#include "runtime/engine/watch/launched_run.h"
#include "runtime/engine/watch/metrics.h"
#include "runtime/engine/watch/stall.h"
#include "runtime/engine/watch/timeline.h"

namespace hvd {

struct WorkNotesPlace {
  WatchPlace watch;
  const std::vector<int>& members;  // global ranks of the set; empty: all
  int rank = 0;                     // this one's in the set
  bool several_hosts = false;
};

class WorkNotes {
 public:
  explicit WorkNotes(const WorkNotesPlace& place);

  // A request comes, beside so many. Before it is marked: others may see that this rank takes part
  // before it goes on here.
  void Comes(const Request& request, int pending) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  void PairComes(const Request& request, int peer, int pending)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  void SetPending(int pending) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) {
    activity_.pending.store(static_cast<uint64_t>(pending), std::memory_order_relaxed);
  }
  // One has finished.
  void CountCall() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) {
    activity_.calls.store(activity_.calls.load(std::memory_order_relaxed) + 1,
                          std::memory_order_relaxed);
  }
  // One is done, and so many are not.
  void Done(int pending, int callers) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) {
    SetPending(pending);
    SetCallers(callers);
  }
  // Both at once.
  void Ended(int pending, int callers) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) {
    CountCall();
    Done(pending, callers);
  }
  // Any thread. A rank that waits in the program's call is in it, one that only has something under
  // way is not.
  void SetCallers(int callers) {
    activity_.callers.store(static_cast<uint32_t>(callers), std::memory_order_relaxed);
  }
  // Answers hvdd's question with what is pending here. One thread at a time.
  void Answer(std::vector<PendingRequest> pending) { stall_.Give(std::move(pending)); }

  // The executor's.
  void SetState(RankState state) { activity_.state.store(state, std::memory_order_relaxed); }
  // Notes what it executes out of a batch; `first` is this rank's first request of that, null if
  // only others have it.
  void BeginRun(RequestKind kind, const Request* first, size_t tensors)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  // It is over. (Not when it broke: what this rank was in stays to be read.)
  void EndRun() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor) { EndWork(&activity_.work); }
  struct RunTimes {
    int64_t batch_ns;  // when its batch came
    int64_t begin_ns;
  };
  // Notes the requests that have ended with a run, and the threshold of fusion.
  void Ran(const RunTimes& times, absl::Span<Request* const> requests, uint64_t threshold)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  // Returns what is to be told of a run that goes to the device, as BeginRun has it; `requests` are
  // this rank's.
  LaunchedRun Launches(const RunTimes& times, absl::Span<Request* const> requests,
                       uint64_t threshold) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  // It is on the device's stream.
  void Launched(const LaunchedRun& run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  // It has finished there, at `end_ns`.
  void Finished(const LaunchedRun& run, int64_t end_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  // Notes the run that the device works on for the longest; null: nothing. Its number is that of
  // the launch.
  void SetDeviceWork(uint64_t number, const LaunchedRun* oldest)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  void RanDirectly(const Request& request, int64_t begin_ns)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  void RanPair(const Request& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  // Others are waited for, since this rank last had work; and for so long.
  void Waits() { waited_ = true; }
  void Waited(int64_t ns) { metrics_.Waited(ns); }
  // The name that is being worked on, should it throw; null: none.
  void set_at_work(const std::string* name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor) {
    at_work_ = name;
  }
  const std::string* at_work() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor) { return at_work_; }

  const Timeline& timeline() const { return timeline_; }
  // As messages name this rank.
  int global_rank() const { return global_rank_; }

 private:
  // The times that are told of all tensors of a run alike.
  struct RunSpans {
    RequestKind kind;
    TraceActivity work;
    RunTimes times;
    int64_t end_ns;
  };
  void TellTensor(const RunSpans& run, const TracedTensor& tensor, int64_t submitted_ns);
  void NoteCameLast(const RunTimes& times);

  const bool several_hosts_;
  const int global_rank_;
  RankActivity& activity_;
  Timeline timeline_;
  Metrics metrics_;
  StallAnswer stall_;
  const LocalName* last_noted_ ABSL_GUARDED_BY(kEngineLock) = nullptr;  // on the page
  bool waited_ = false;  // the executor's; set inside its waits
  const std::string* at_work_ ABSL_GUARDED_BY(kExecutor) = nullptr;
  // The run that the page says this rank executes.
  struct NotedRun {
    uint64_t number = 0;
    const LocalName* first = nullptr;
    RequestKind kind = RequestKind::kLeave;
    size_t tensors = 0;
  } noted_run_ ABSL_GUARDED_BY(kExecutor);
  int64_t device_end_ns_ ABSL_GUARDED_BY(kExecutor) = 0;  // when a run finished there last
  // While the timeline is on: when each name's latest run finished there, by its number.
  std::unordered_map<uint32_t, int64_t> traced_ends_ ABSL_GUARDED_BY(kExecutor);
};

}  // namespace hvd
