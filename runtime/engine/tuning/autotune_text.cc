// SPDX-License-Identifier: Apache-2.0
// Points of the search as settings, as a file and as CSV.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/settings/setting_values.h"
#include "runtime/engine/tuning/autotune.h"

namespace hvd::rt {
namespace {

// In the order of Knob.
constexpr std::array<SettingId, kKnobs> kIds = {
    SettingId::kFusionThreshold, SettingId::kBatchWait,  SettingId::kOneShotBytes,
    SettingId::kPieceBytes,      SettingId::kRailsBytes, SettingId::kRingBytes,
    SettingId::kSegmentBytes,
};

const Setting& SettingOf(size_t knob) { return Settings()[static_cast<size_t>(kIds[knob])]; }

}  // namespace

TunePoint PointOf(const EngineConfig& config) {
  const HierarchicalThresholds& thresholds = config.thresholds;
  const auto bytes = [](size_t value) { return static_cast<int64_t>(value); };
  return {config.fusion_threshold,
          config.batch_wait_us,
          bytes(thresholds.host.one_shot_bytes),
          bytes(thresholds.host.staged_piece_bytes),
          bytes(thresholds.rails_bytes),
          bytes(thresholds.message.ring_bytes),
          bytes(thresholds.message.segment_bytes)};
}

void Apply(const TunePoint& point, EngineConfig* config) {
  const auto at = [&point](Knob knob) { return point[static_cast<size_t>(knob)]; };
  const auto bytes = [&at](Knob knob) { return static_cast<size_t>(at(knob)); };
  config->fusion_threshold = at(Knob::kFusionThreshold);
  config->batch_wait_us = at(Knob::kBatchWait);
  HierarchicalThresholds& thresholds = config->thresholds;
  thresholds.host.one_shot_bytes = bytes(Knob::kOneShot);
  thresholds.host.staged_piece_bytes = bytes(Knob::kPiece);
  thresholds.rails_bytes = bytes(Knob::kRails);
  thresholds.message.ring_bytes = bytes(Knob::kRing);
  thresholds.message.segment_bytes = bytes(Knob::kSegment);
}

std::string FormatResult(const TunePoint& point) {
  std::string text;
  for (size_t knob = 0; knob < kKnobs; ++knob) {
    const Setting& setting = SettingOf(knob);
    absl::StrAppend(&text, setting.name, "=",
                    ShowNumber(setting.kind, static_cast<double>(point[knob])), "\n");
  }
  return text;
}

absl::StatusOr<TunePoint> ParseResult(absl::string_view text, const TunePoint& start) {
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  const auto values = SettingValues::Read(lines);
  if (!values.ok()) return values.status();
  TunePoint point = start;
  size_t known = 0;
  for (size_t knob = 0; knob < kKnobs; ++knob) {
    if (!values->IsSet(kIds[knob])) continue;
    point[knob] = static_cast<int64_t>(values->Number(kIds[knob]));
    ++known;
  }
  if (known == 0) return absl::InvalidArgumentError("it holds no result of a search");
  return point;
}

std::string CsvHead() {
  std::string head = "sample";
  for (size_t knob = 0; knob < kKnobs; ++knob) absl::StrAppend(&head, ",", SettingOf(knob).name);
  return head + ",score_bytes_per_us,phase\n";
}

std::string CsvLine(size_t number, const TuneSample& sample) {
  std::string line = absl::StrCat(number);
  for (const int64_t value : sample.point) absl::StrAppend(&line, ",", value);
  return absl::StrCat(line, ",", sample.score, ",", sample.phase, "\n");
}

}  // namespace hvd::rt
