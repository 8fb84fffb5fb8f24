// SPDX-License-Identifier: Apache-2.0
// Runs agreed batches, fused, on the collectives or on the rank's device; owns what that needs: the
// memory of a joined rank, the settings that a search may change, and the search.
//
// Threads: the executor's, but for what submitters read of the settings.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "runtime/collective/collectives.h"
#include "runtime/engine/agreement/board/log_entry.h"
#include "runtime/engine/execution/device_runs.h"
#include "runtime/engine/request/engine_lock.h"
#include "runtime/engine/request/tensor_places.h"
#include "runtime/engine/tuning/config.h"
#include "runtime/engine/tuning/tuner.h"
#include "runtime/engine/watch/work_notes.h"

namespace hvd::rt {

// The batch that every rank executes next, and this rank's part of it.
struct AgreedBatch {
  std::vector<LogEntry> entries;
  std::vector<Request*> requests;  // by entry; null: this rank has joined and has not asked for it
};

// The result of a batch: this rank's requests of it that are over, in order, with their status.
struct ExecutedBatch {
  std::vector<Request*> finished;  // the bytes are there, or the request has failed
  std::vector<Request*> launched;  // done: they are on the device's stream (Unfinished)
};

// All borrowed.
struct BatchParts {
  Collectives* collectives = nullptr;
  DeviceRuns* device = nullptr;
  const TensorPlaces* places = nullptr;
  WorkNotes* notes = nullptr;
  bool several_hosts = false;
};

class BatchExecutor {
 public:
  // `tuner`: searches for better settings meanwhile; null: no.
  BatchExecutor(const BatchParts& parts, const EngineConfig& config, std::unique_ptr<Tuner> tuner);

  // Blocks until this rank has done its part of all, or has put it on the device's stream. An error
  // ends the epoch: the ranks have lost one another. Afterwards a group of several types has an
  // entry a type in `batch`.
  absl::Status Execute(AgreedBatch* batch, ExecutedBatch* executed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  // Behind each batch, on all ranks alike: whether a sample of the search ends with it.
  bool EndsSample(const AgreedBatch& batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  // Then, before the next batch and when all that was launched has finished (what has not would be
  // measured as if it took no time): all ranks change their settings.
  absl::Status Tune() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);

  // As it was read; what a search changes of it is not in it.
  const EngineConfig& config() const { return config_; }
  const HierarchicalThresholds& thresholds() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor) {
    return tuned_.thresholds;
  }
  // Any thread: how long a batch that nobody waits for stays open, and what fills it.
  int64_t batch_wait_us() const { return batch_wait_us_.load(std::memory_order_relaxed); }
  size_t fusion_threshold() const {
    return static_cast<size_t>(fusion_threshold_.load(std::memory_order_relaxed));
  }

 private:
  using Run = std::vector<size_t>;  // indices into the batch
  struct Turn {
    const AgreedBatch& batch;
    const Run& run;
    RunTimes times;
  };
  absl::Status SplitGroups(AgreedBatch* batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  absl::StatusOr<std::vector<Signature>> OtherTypes(const LogEntry& entry, const Request* request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  absl::Status RunHere(const Turn& turn, ExecutedBatch* executed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  absl::Status RunOnDevice(const Turn& turn, ExecutedBatch* executed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  void End(const Turn& turn, absl::Span<Request* const> requests, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  absl::StatusOr<bool> Takes(const DeviceRun& run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  absl::Status ExecuteRun(const AgreedBatch& batch, const Run& run)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  absl::Status ExecuteFused(const AgreedBatch& batch, const Run& run)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  void PrepareAbsent(const AgreedBatch& batch, const Run& run)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);

  const BatchParts parts_;
  const EngineConfig config_;
  EngineConfig tuned_ ABSL_GUARDED_BY(kExecutor);
  std::unique_ptr<Tuner> tuner_ ABSL_GUARDED_BY(kExecutor);  // null: none, or done
  std::atomic<int64_t> batch_wait_us_, fusion_threshold_;    // written by the executor
  // The values that a joined rank brings, and the place of results that nobody asked for.
  std::vector<std::byte> neutral_ ABSL_GUARDED_BY(kExecutor), dropped_ ABSL_GUARDED_BY(kExecutor);
};

}  // namespace hvd::rt
