// SPDX-License-Identifier: Apache-2.0
// What is told of a set's runs when they are over: counts for the metrics, spans for the timeline.
//
// Threads: the executor's, but for Stamp.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "absl/types/span.h"
#include "runtime/engine/request/engine_lock.h"
#include "runtime/engine/watch/launched_run.h"
#include "runtime/engine/watch/metrics.h"
#include "runtime/engine/watch/timeline.h"

namespace hvd::rt {

struct RunTimes {
  int64_t batch_ns = 0;  // when its batch came
  int64_t begin_ns = 0;
};

class RunRecord {
 public:
  RunRecord(const WatchPlace& place, bool several_hosts)
      : several_hosts_(several_hosts), timeline_(place), metrics_(place) {}

  // Any thread: the time now, or 0 while the timeline is off.
  int64_t Stamp() const { return timeline_.Stamp(); }

  // Requests have ended with a run of a batch; `threshold`: of fusion.
  void Ran(const RunTimes& times, absl::Span<Request* const> requests, uint64_t threshold)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  void RanDirectly(const Request& request, int64_t begin_ns)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  void RanPair(const Request& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  // Fills in what is to be told of this rank's requests when the device has finished them.
  static void Keep(absl::Span<Request* const> requests, LaunchedRun* run);
  // The run is on the device's stream; and it has finished there, at `end_ns`.
  void Launched(const LaunchedRun& run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  void Finished(const LaunchedRun& run, int64_t end_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);

  // Others are waited for, since this rank last had work; and for so long.
  void Waits() { waited_ = true; }
  void Waited(int64_t ns) { metrics_.Waited(ns); }

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
  Timeline timeline_;
  Metrics metrics_;
  bool waited_ = false;                                   // set inside the executor's waits
  int64_t device_end_ns_ ABSL_GUARDED_BY(kExecutor) = 0;  // when a run finished there last
  // While the timeline is on: when each name's latest run finished there, by its number.
  std::unordered_map<uint32_t, int64_t> traced_ends_ ABSL_GUARDED_BY(kExecutor);
};

}  // namespace hvd::rt
