// SPDX-License-Identifier: Apache-2.0
// Options of hvdrun that are spellings of workers' settings. Data only; proto/settings/settings.h
// says what a value may be.
#pragma once

#include "absl/types/span.h"
#include "proto/settings/settings.h"

namespace hvd::cli {

struct SettingOption {
  const char* names;  // as CLI11 takes them
  const char* type;   // of the value; nothing: a flag
  SettingId id;
  const char* unit;  // of a value that has none; of a flag: the value
  const char* help;
  const char* example = "";  // of a value that can be wrong
};

// A flag and its opposite stand one after the other.
absl::Span<const SettingOption> SettingOptions();

}  // namespace hvd::cli
