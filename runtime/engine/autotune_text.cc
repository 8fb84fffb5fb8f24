// Points of the search as settings, as a file and as CSV.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/setting_values.h"
#include "runtime/engine/autotune.h"

namespace hvd {
namespace {

struct KnobWords {
  SettingId id;
  int64_t EngineConfig::*field;
};

// In the order of Knob.
constexpr std::array<KnobWords, kKnobs> kWords = {{
    {SettingId::kFusionThreshold, &EngineConfig::fusion_threshold},
    {SettingId::kBatchWait, &EngineConfig::batch_wait_us},
    {SettingId::kOneShotBytes, &EngineConfig::one_shot_bytes},
    {SettingId::kPieceBytes, &EngineConfig::piece_bytes},
    {SettingId::kRailsBytes, &EngineConfig::rails_bytes},
    {SettingId::kRingBytes, &EngineConfig::ring_bytes},
    {SettingId::kSegmentBytes, &EngineConfig::segment_bytes},
}};

const Setting& SettingOf(size_t knob) { return Settings()[static_cast<size_t>(kWords[knob].id)]; }

}  // namespace

TunePoint PointOf(const EngineConfig& config) {
  TunePoint point;
  for (size_t knob = 0; knob < kKnobs; ++knob) point[knob] = config.*kWords[knob].field;
  return point;
}

void Apply(const TunePoint& point, EngineConfig* config) {
  for (size_t knob = 0; knob < kKnobs; ++knob) config->*kWords[knob].field = point[knob];
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
    if (!values->IsSet(kWords[knob].id)) continue;
    point[knob] = static_cast<int64_t>(values->Number(kWords[knob].id));
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

}  // namespace hvd
