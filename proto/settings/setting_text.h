// SPDX-License-Identifier: Apache-2.0
// One setting's value: text → number, with an error that says what is allowed.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/settings/settings.h"

namespace hvd {

struct SettingValue {
  double number = 0;  // bytes, seconds, microseconds, count, 0 or 1, index of the choice
  std::string text;   // of kText
};

// `text` as the user of `setting.name` writes it. InvalidArgument says what is wrong with it:
// "must be …, not …".
absl::StatusOr<SettingValue> ParseSetting(const Setting& setting, absl::string_view text);
// The same in the unit of setting.alias.
absl::StatusOr<SettingValue> ParseAlias(const Setting& setting, absl::string_view text);

// A number of the setting's unit as one would write it: "64M", "50us", "1.5s".
std::string ShowNumber(SettingKind kind, double number);

}  // namespace hvd
