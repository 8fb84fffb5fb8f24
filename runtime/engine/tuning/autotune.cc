// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/tuning/autotune.h"

#include <algorithm>

namespace hvd::rt {
namespace {

constexpr int64_t kKiB = 1024;
constexpr int64_t kMiB = kKiB * kKiB;
// Less is noise.
constexpr double kBetter = 1.02;
// The start and the best by turns, each twice.
constexpr int kConfirmations = 4;

size_t At(Knob knob) { return static_cast<size_t>(knob); }

std::vector<int64_t> GridOf(Knob knob) {
  switch (knob) {
    case Knob::kFusionThreshold:
      return {1 * kMiB, 4 * kMiB, 16 * kMiB, 32 * kMiB, 64 * kMiB, 128 * kMiB, 256 * kMiB};
    case Knob::kBatchWait:
      return {0, 20, 50, 100, 200, 500, 1000};
    case Knob::kOneShot:
      return {4 * kKiB, 16 * kKiB, 32 * kKiB, 64 * kKiB, 128 * kKiB};
    case Knob::kPiece:
      return {32 * kKiB, 64 * kKiB, 128 * kKiB, 256 * kKiB};
    case Knob::kRails:
      return {2 * kKiB, 8 * kKiB, 32 * kKiB, 128 * kKiB};
    case Knob::kRing:
      return {64 * kKiB, 256 * kKiB, 512 * kKiB, 1 * kMiB, 4 * kMiB};
    case Knob::kSegment:
      return {64 * kKiB, 128 * kKiB, 256 * kKiB, 512 * kKiB, 1 * kMiB};
  }
  return {};
}

}  // namespace

Autotune::Autotune(const TunePoint& start, const TuneLimits& limits)
    : start_(start), limits_(limits), candidate_(start), best_(start) {
  const size_t knobs = limits.several_hosts ? kKnobs : At(Knob::kRails);
  for (size_t knob = 0; knob < knobs; ++knob) {
    Axis axis = {knob, GridOf(static_cast<Knob>(knob))};
    const auto place = std::lower_bound(axis.grid.begin(), axis.grid.end(), start[knob]);
    if (place == axis.grid.end() || *place != start[knob]) axis.grid.insert(place, start[knob]);
    axes_.push_back(std::move(axis));
  }
  if (limits_.warmup == 0) phase_ = Phase::kSearch;
}

void Autotune::Score(double score) {
  static constexpr const char* kNames[] = {"warmup", "search", "confirm"};
  samples_.push_back({candidate_, score, kNames[static_cast<size_t>(phase_)]});
  switch (phase_) {
    case Phase::kWarmup:
      if (static_cast<int>(samples_.size()) >= limits_.warmup) phase_ = Phase::kSearch;
      return;
    case Phase::kSearch:
      return Search(score);
    case Phase::kConfirm:
      return Confirm(score);
    case Phase::kDone:
      return;
  }
}

void Autotune::Search(double score) {
  ++searched_;
  if (candidate_ == start_ || score > best_score_ * kBetter) {
    best_ = candidate_;
    best_score_ = score;
    idle_axes_ = 0;
  } else {
    TurnBack();
  }
  const bool room = searched_ + kConfirmations < limits_.samples;
  if (!room || !FindNext()) EndSearch();
}

bool Autotune::FindNext() {
  for (; idle_axes_ < axes_.size(); TurnToNextAxis()) {
    for (; turns_ < 2; TurnBack()) {
      if (FindNeighbour()) return true;
    }
  }
  return false;
}

bool Autotune::FindNeighbour() {
  const Axis& axis = axes_[axis_];
  const auto here = std::find(axis.grid.begin(), axis.grid.end(), best_[axis.knob]);
  const ptrdiff_t next = here - axis.grid.begin() + direction_;
  if (next < 0 || next >= static_cast<ptrdiff_t>(axis.grid.size())) return false;
  candidate_ = best_;
  candidate_[axis.knob] = axis.grid[static_cast<size_t>(next)];
  return std::none_of(samples_.begin(), samples_.end(),
                      [this](const TuneSample& sample) { return sample.point == candidate_; });
}

void Autotune::TurnBack() {
  direction_ = -direction_;
  ++turns_;
}

void Autotune::TurnToNextAxis() {
  axis_ = (axis_ + 1) % axes_.size();
  direction_ = 1;
  turns_ = 0;
  ++idle_axes_;
}

void Autotune::EndSearch() {
  candidate_ = start_;
  phase_ = best_ == start_ ? Phase::kDone : Phase::kConfirm;
}

void Autotune::Confirm(double score) {
  confirm_sums_[static_cast<size_t>(confirmed_ % 2)] += score;
  ++confirmed_;
  candidate_ = confirmed_ % 2 == 0 ? start_ : best_;
  if (confirmed_ < kConfirmations) return;
  candidate_ = confirm_sums_[1] > confirm_sums_[0] * kBetter ? best_ : start_;
  phase_ = Phase::kDone;
}

}  // namespace hvd::rt
