// SPDX-License-Identifier: Apache-2.0
// The search at work in one rank's engine: counts the batches of a sample, scores it, and has every
// rank change its settings after the same batch.
//
// All ranks execute the same log, so all know after which batch a sample is over; there the engine
// broadcasts rank 0's decision. The executor's, like the log.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/engine/tuning/autotune.h"

namespace hvd::rt {

// The decision that rank 0 tells the others, as it travels.
struct TuneDecision {
  TunePoint point = {};
  int64_t done = 0;
};

class Tuner {
 public:
  struct Place {
    int rank = 0;
    bool several_hosts = false;
  };
  // Null: not wanted (HVD_AUTOTUNE). If HVD_AUTOTUNE_FILE holds a result on rank 0, that is the
  // first decision and there is no search. InvalidArgument when the file holds something else.
  static absl::StatusOr<std::unique_ptr<Tuner>> Make(const Place& place,
                                                     const EngineConfig& config);

  // After each executed batch. True: a sample is over, on all ranks: Decide, broadcast, Adopt.
  bool CountBatch(int64_t bytes);
  // Rank 0's; on the others nothing, which the broadcast overwrites.
  TuneDecision Decide();
  // False when the search is over: no more batches need to be counted.
  bool Adopt(const TuneDecision& decision, EngineConfig* config);

 private:
  using Clock = std::chrono::steady_clock;

  Tuner(const Place& place, const EngineConfig& config);
  absl::Status ReadResult();
  // To HVD_AUTOTUNE_LOG; one that cannot be written is said once.
  void Log(const std::string& text);
  void Finish();
  void DoubtResultFile() const;
  void SayUnwritten(const char* setting, const std::string& path) const;

  const Place place_;
  const EngineConfig config_;
  Autotune search_;
  std::optional<TunePoint> known_;  // the file's
  bool log_failed_ = false;
  int batches_ = 0;
  int64_t bytes_ = 0;
  Clock::time_point began_;
};

}  // namespace hvd::rt
