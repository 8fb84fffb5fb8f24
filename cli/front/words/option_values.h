// SPDX-License-Identifier: Apache-2.0
// How an option's text becomes a value, and what is said when it cannot.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace hvd::cli {

struct NumberRange {
  int least;
  int most;
  int example;
};

// An option as it was given.
struct Given {
  absl::string_view name;
  const std::string& value;
};

// "--lease WHY", the option with a caret under its value, and how to write one.
absl::Status WrongValue(const Given& given, absl::string_view why, absl::string_view hint);

// An empty value leaves the field as it is.
absl::Status ReadNumber(const Given& given, NumberRange range, int* field);

// Seconds, at least `least`. An empty value leaves the field as it is.
absl::Status ReadTime(const Given& given, double least, double* field);

}  // namespace hvd::cli
