// SPDX-License-Identifier: Apache-2.0
#include "proto/settings/setting_text.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/nearest.h"
#include "base/source_error.h"

namespace hvd {
namespace {

struct Unit {
  absl::string_view name;
  double factor;
};
constexpr double kKiB = 1024;
// The largest first, and "" for a bare number; a suffix that ends another comes after it.
constexpr std::array<Unit, 5> kByteUnits = {{{"t", kKiB* kKiB* kKiB* kKiB},
                                             {"g", kKiB* kKiB* kKiB},
                                             {"m", kKiB* kKiB},
                                             {"k", kKiB},
                                             {"", 1}}};
constexpr std::array<Unit, 5> kSecondUnits = {
    {{"h", 3600}, {"ms", 1e-3}, {"m", 60}, {"s", 1}, {"", 1}}};
constexpr std::array<Unit, 4> kMicrosecondUnits = {{{"us", 1}, {"ms", 1e3}, {"s", 1e6}, {"", 1}}};
constexpr std::array<Unit, 1> kNoUnits = {{{"", 1}}};

// How numbers of a kind are written.
struct Grammar {
  absl::Span<const Unit> units;
  bool whole = false;
  bool bytes = false;
};

Grammar GrammarOf(SettingKind kind) {
  if (kind == SettingKind::kBytes) return {kByteUnits, true, true};
  if (kind == SettingKind::kSeconds) return {kSecondUnits};
  if (kind == SettingKind::kMicroseconds) return {kMicrosecondUnits};
  return {kNoUnits, true};
}

const char* ExamplesOf(SettingKind kind) {
  if (kind == SettingKind::kBytes) return "bytes, like 65536, 64K or 1.5M,";
  if (kind == SettingKind::kSeconds) return "a time, like 60, 500ms or 2m,";
  if (kind == SettingKind::kMicroseconds) return "microseconds, like 50 or 1ms,";
  return "a whole number";
}

// "64MiB" and "64MB" are "64m".
std::string Bare(const Grammar& grammar, absl::string_view text) {
  std::string bare = absl::AsciiStrToLower(absl::StripAsciiWhitespace(text));
  if (!grammar.bytes) return bare;
  if (absl::EndsWith(bare, "ib")) {
    bare.resize(bare.size() - 2);
  } else if (absl::EndsWith(bare, "b")) {
    bare.resize(bare.size() - 1);
  }
  return bare;
}

bool ParseNumber(const Grammar& grammar, absl::string_view text, double* number) {
  const std::string bare = Bare(grammar, text);
  for (const Unit& unit : grammar.units) {
    if (!absl::EndsWith(bare, unit.name)) continue;
    const absl::string_view digits = absl::StripAsciiWhitespace(
        absl::string_view(bare).substr(0, bare.size() - unit.name.size()));
    // Neither signs nor "inf" nor "0x10".
    if (digits.find_first_not_of("0123456789.") != absl::string_view::npos) return false;
    if (!absl::SimpleAtod(digits, number)) return false;
    *number *= unit.factor;
    return !grammar.whole || *number == std::floor(*number);
  }
  return false;
}

absl::StatusOr<SettingValue> ParseFlag(absl::string_view text) {
  for (const char* yes : {"1", "true", "yes", "on"}) {
    if (absl::EqualsIgnoreCase(text, yes)) return SettingValue{1, ""};
  }
  for (const char* no : {"0", "false", "no", "off"}) {
    if (absl::EqualsIgnoreCase(text, no)) return SettingValue{0, ""};
  }
  return absl::InvalidArgumentError(
      absl::StrCat("must be 1 or 0 (or true, false, yes, no, on, off), not ", Quoted(text)));
}

absl::StatusOr<SettingValue> ParseChoice(const Setting& setting, absl::string_view text) {
  const auto words = setting.choices;
  for (size_t word = 0; word < words.size(); ++word) {
    if (absl::EqualsIgnoreCase(text, words[word])) {
      return SettingValue{static_cast<double>(word), std::string(words[word])};
    }
  }
  const absl::string_view nearest = Nearest(text, words);
  return absl::InvalidArgumentError(absl::StrCat(
      "must be one of ", absl::StrJoin(words, ", "), ", not ", Quoted(text),
      nearest.empty() ? std::string() : absl::StrCat("; did you mean ", nearest, "?")));
}

absl::Status WrongNumber(const Setting& setting, absl::string_view text, double scale,
                         const double* number) {
  const double least = setting.least / scale, most = setting.most / scale;
  std::string message;
  if (scale == 1) {
    message = absl::StrCat("must be ", ExamplesOf(setting.kind), " from ",
                           ShowNumber(setting.kind, least), " to ", ShowNumber(setting.kind, most));
  } else {
    message = absl::StrCat("must be milliseconds from ", least, " to ", most);
  }
  absl::StrAppend(&message, ", not ", Quoted(text));
  if (number != nullptr) {
    absl::StrAppend(&message, "; the nearest is ",
                    ShowNumber(setting.kind, std::clamp(*number, setting.least, setting.most)));
  }
  return absl::InvalidArgumentError(message);
}

absl::StatusOr<SettingValue> ParseScaled(const Setting& setting, absl::string_view text,
                                         double scale) {
  if (setting.kind == SettingKind::kText) return SettingValue{0, std::string(text)};
  if (setting.kind == SettingKind::kFlag) return ParseFlag(text);
  if (setting.kind == SettingKind::kChoice) return ParseChoice(setting, text);
  double number = 0;
  // An alias of another unit is a bare number in that unit.
  const Grammar grammar = scale == 1 ? GrammarOf(setting.kind) : Grammar{kNoUnits};
  if (!ParseNumber(grammar, text, &number)) return WrongNumber(setting, text, scale, nullptr);
  number *= scale;
  if (number < setting.least || number > setting.most) {
    return WrongNumber(setting, text, scale, &number);
  }
  return SettingValue{number, ""};
}

}  // namespace

std::string ShowNumber(SettingKind kind, double number) {
  if (number == 0) return "0";
  if (kind == SettingKind::kSeconds) {
    constexpr double kHour = 3600;
    const bool in_hours = number >= 100 * kHour && std::fmod(number, kHour) == 0;
    return in_hours ? absl::StrCat(number / kHour, "h") : absl::StrCat(number, "s");
  }
  if (kind == SettingKind::kMicroseconds) return absl::StrCat(static_cast<int64_t>(number), "us");
  const auto whole = static_cast<int64_t>(number);
  if (kind != SettingKind::kBytes) return absl::StrCat(whole);
  for (const Unit& unit : kByteUnits) {
    const auto factor = static_cast<int64_t>(unit.factor);
    if (whole % factor == 0) return absl::StrCat(whole / factor, absl::AsciiStrToUpper(unit.name));
  }
  return absl::StrCat(whole);
}

absl::StatusOr<SettingValue> ParseSetting(const Setting& setting, absl::string_view text) {
  return ParseScaled(setting, text, 1);
}

absl::StatusOr<SettingValue> ParseAlias(const Setting& setting, absl::string_view text) {
  return ParseScaled(setting, text, setting.alias_scale);
}

}  // namespace hvd
