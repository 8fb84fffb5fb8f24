// SPDX-License-Identifier: Apache-2.0
#include "cli/front/words/option_values.h"

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "base/source_error.h"
#include "cli/front/words/duration.h"

namespace hvd::cli {

absl::Status WrongValue(const Given& given, absl::string_view why, absl::string_view hint) {
  const std::string line = absl::StrCat(given.name, " ", given.value);
  return absl::InvalidArgumentError(absl::StrCat(
      given.name, why, "\n", ShowWithCaret(line, given.name.size() + 1), "\n  ", hint));
}

absl::Status ReadNumber(const Given& given, NumberRange range, int* field) {
  if (given.value.empty()) return absl::OkStatus();
  if (absl::SimpleAtoi(given.value, field) && *field >= range.least && *field <= range.most) {
    return absl::OkStatus();
  }
  return WrongValue(given,
                    absl::StrCat(" must be a number from ", range.least, " to ", range.most,
                                 ", not ", Quoted(given.value)),
                    absl::StrCat("for example ", given.name, " ", range.example));
}

absl::Status ReadTime(const Given& given, double least, double* field) {
  if (given.value.empty()) return absl::OkStatus();
  const absl::StatusOr<double> seconds = ParseDuration(given.value);
  const std::string example = absl::StrCat("for example ", given.name, " ");
  if (!seconds.ok()) {
    return WrongValue(given, absl::StrCat(": ", seconds.status().message()),
                      absl::StrCat(example, "30s"));
  }
  if (*seconds < least) {
    return WrongValue(given,
                      absl::StrCat(" must be at least ", least, "s, not ", Printable(given.value)),
                      absl::StrCat(example, *field, "s"));
  }
  *field = *seconds;
  return absl::OkStatus();
}

}  // namespace hvd::cli
