// SPDX-License-Identifier: Apache-2.0
#include "proto/settings/setting_values.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/nearest.h"
#include "base/printable.h"
#include "base/source_error.h"

namespace hvd {
namespace {

using Variables = std::map<std::string, std::string>;

Variables Split(absl::Span<const std::string> environment) {
  Variables variables;
  for (const std::string& entry : environment) {
    const size_t equals = entry.find('=');
    if (equals == std::string::npos || equals + 1 == entry.size()) continue;
    if (!absl::StartsWith(entry, "HVD_") && !absl::StartsWith(entry, "HOROVOD_")) continue;
    variables.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return variables;
}

const std::string* Find(const Variables& variables, const char* name) {
  const auto found = name == nullptr ? variables.end() : variables.find(name);
  return found == variables.end() ? nullptr : &found->second;
}

bool Same(const SettingValue& a, const SettingValue& b) {
  return a.number == b.number && a.text == b.text;
}

std::string Show(const Setting& setting, const SettingValue& value) {
  if (setting.kind == SettingKind::kText) return Quoted(value.text);
  if (setting.kind == SettingKind::kChoice) {
    return std::string(setting.choices[static_cast<size_t>(value.number)]);
  }
  return ShowNumber(setting.kind, value.number);
}

// Only HVD_ is ours: other programs may have HOROVOD_ names of their own.
std::string WarningOf(const std::string& name) {
  std::vector<absl::string_view> known;
  for (const Setting& setting : Settings()) known.push_back(setting.name);
  for (const absl::string_view other : OtherVariables()) known.push_back(other);
  if (!absl::StartsWith(name, "HVD_") ||
      std::find(known.begin(), known.end(), name) != known.end()) {
    return "";
  }
  // The prefix is not evidence.
  for (absl::string_view& each : known) each.remove_prefix(4);
  const absl::string_view nearest = Nearest(absl::string_view(name).substr(4), known);
  if (nearest.empty()) return "";
  return absl::StrCat(Printable(name), " is no setting; did you mean HVD_", nearest, "?");
}

}  // namespace

absl::StatusOr<SettingValues> SettingValues::Read(absl::Span<const std::string> environment) {
  const Variables variables = Split(environment);
  SettingValues values;
  std::vector<std::string> wrong;
  const auto take = [&wrong](const char* name, const absl::StatusOr<SettingValue>& value) {
    if (!value.ok()) wrong.push_back(absl::StrCat(name, " ", value.status().message()));
    return value.ok();
  };
  for (const Setting& setting : Settings()) {
    Effective effective;
    if (setting.fallback != nullptr) effective.value = *ParseSetting(setting, setting.fallback);
    if (const std::string* text = Find(variables, setting.alias)) {
      const auto value = ParseAlias(setting, *text);
      if (take(setting.alias, value)) effective = {*value, setting.alias, ""};
    }
    if (const std::string* text = Find(variables, setting.name)) {
      const auto value = ParseSetting(setting, *text);
      const bool differs = value.ok() && !effective.from.empty() && !Same(*value, effective.value);
      if (take(setting.name, value)) {
        effective = {*value, setting.name, differs ? setting.alias : ""};
      }
    }
    values.effective_.push_back(std::move(effective));
  }
  if (!wrong.empty()) return absl::InvalidArgumentError(absl::StrJoin(wrong, "\n"));
  for (const ForeignSetting& foreign : ForeignSettings()) {
    if (Find(variables, foreign.name) == nullptr) continue;
    // hvdd sets both for the ranks of an elastic job.
    const bool own = foreign.name == std::string_view("HOROVOD_ELASTIC");
    if (own && Find(variables, "HVD_ELASTIC") != nullptr) continue;
    values.notes_.push_back(absl::StrCat(foreign.name, " has no effect: ", foreign.why));
  }
  values.WarnOfIdleAutotune();
  for (const auto& [name, text] : variables) {
    std::string warning = WarningOf(name);
    if (!warning.empty()) values.warnings_.push_back(std::move(warning));
  }
  return values;
}

std::string SettingValues::Show(SettingId id) const {
  return hvd::Show(Settings()[static_cast<size_t>(id)], Of(id).value);
}

void SettingValues::WarnOfIdleAutotune() {
  if (Flag(SettingId::kAutotune)) return;
  for (const SettingId id : {SettingId::kAutotuneLog, SettingId::kAutotuneFile}) {
    if (!IsSet(id)) continue;
    warnings_.push_back(
        absl::StrCat(Of(id).from, " has no effect without HVD_AUTOTUNE=1 (hvdrun --autotune)"));
  }
}

std::vector<std::string> SettingValues::Describe() const {
  std::vector<std::string> lines;
  for (const Setting& setting : Settings()) {
    const Effective& effective = Of(setting.id);
    if (effective.from.empty()) continue;
    std::string line = absl::StrCat(setting.name, " ", Show(setting.id));
    if (effective.from != setting.name) absl::StrAppend(&line, " (from ", effective.from, ")");
    if (!effective.overridden.empty()) {
      absl::StrAppend(&line, " (", effective.overridden, " says otherwise and does not count)");
    }
    if (setting.id == SettingId::kBatchWait && effective.from == setting.alias) {
      absl::StrAppend(&line, "; there is no cycle, only a batch that nobody waits for stays open");
    }
    lines.push_back(std::move(line));
  }
  lines.insert(lines.end(), notes_.begin(), notes_.end());
  return lines;
}

}  // namespace hvd
