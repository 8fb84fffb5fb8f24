// SPDX-License-Identifier: Apache-2.0
// The search for better settings while a program runs: scores in, the next candidate out. Pure; one
// caller at a time.
//
// It goes from the defaults along one setting after the other, a step of its grid at a time, and
// stays where the score is better by more than the noise. The best is then measured again beside
// the defaults, so that luck cannot win. Never more samples than it was given.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/engine/tuning/config.h"

namespace hvd::rt {

// The settings that are searched for. In a job on one host the last three are left alone.
enum class Knob { kFusionThreshold, kBatchWait, kOneShot, kPiece, kRails, kRing, kSegment };
inline constexpr size_t kKnobs = 7;
// A value each; bytes, or microseconds of kBatchWait.
using TunePoint = std::array<int64_t, kKnobs>;

TunePoint PointOf(const EngineConfig& config);
void Apply(const TunePoint& point, EngineConfig* config);

struct TuneLimits {
  int warmup = 3;    // first scores that are thrown away
  int samples = 40;  // at most, the warm-up not counted; at least 6
  bool several_hosts = false;
};

struct TuneSample {
  TunePoint point = {};
  double score = 0;
  const char* phase = "";  // "warmup", "search", "confirm" or "result"
};

class Autotune {
 public:
  // The grid of each setting contains the value that it has in `start`.
  Autotune(const TunePoint& start, const TuneLimits& limits);

  // Returns the settings that should be in force now; when done, the result.
  const TunePoint& candidate() const { return candidate_; }
  bool done() const { return phase_ == Phase::kDone; }
  // How well candidate() did: bytes a microsecond, larger is better. REQUIRES: !done().
  void Score(double score);
  const std::vector<TuneSample>& samples() const { return samples_; }

 private:
  enum class Phase { kWarmup, kSearch, kConfirm, kDone };
  struct Axis {
    size_t knob = 0;
    std::vector<int64_t> grid;  // ascending
  };

  void Search(double score);
  void Confirm(double score);
  // Makes candidate_ the next neighbour of best_ that is not known; false when there is none.
  bool FindNext();
  bool FindNeighbour();
  void TurnBack();
  void TurnToNextAxis();
  void EndSearch();

  const TunePoint start_;
  const TuneLimits limits_;
  std::vector<Axis> axes_;
  Phase phase_ = Phase::kWarmup;
  TunePoint candidate_, best_;
  double best_score_ = 0;
  size_t axis_ = 0;       // whose turn it is
  int direction_ = 1;     // along it, 1 or -1
  int turns_ = 0;         // of direction, on this axis
  size_t idle_axes_ = 0;  // in a row, without an improvement
  int searched_ = 0, confirmed_ = 0;
  std::array<double, 2> confirm_sums_ = {};  // of start_, of best_
  std::vector<TuneSample> samples_;
};

// The result as a file: lines NAME=VALUE, which also serve as environment.
std::string FormatResult(const TunePoint& point);
// InvalidArgument names the line's setting.
absl::StatusOr<TunePoint> ParseResult(absl::string_view text, const TunePoint& start);

// The log: a head, then a line a sample.
std::string CsvHead();
std::string CsvLine(size_t number, const TuneSample& sample);

}  // namespace hvd::rt
