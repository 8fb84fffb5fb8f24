// SPDX-License-Identifier: Apache-2.0
#include "cli/front/words/duration.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/source_error.h"

namespace hvd::cli {
namespace {

constexpr absl::Duration kLongest = absl::Hours(366 * 24);

}  // namespace

absl::StatusOr<double> ParseDuration(const std::string& text) {
  const bool is_number = text.find_first_not_of("0123456789.") == std::string::npos;
  // absl knows signs and "inf", too, which no time of ours has.
  const bool begins_well = !text.empty() && (absl::ascii_isdigit(text[0]) || text[0] == '.');
  absl::Duration time;
  if (begins_well && absl::ParseDuration(is_number ? text + "s" : text, &time)) {
    if (time <= kLongest) return absl::ToDoubleSeconds(time);
    return absl::InvalidArgumentError(
        absl::StrCat(Quoted(text), " is too long; at most a year (8784h) can be waited"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(Quoted(text), " is not a time; write 30, 30s, 2m, 1.5h or 500ms"));
}

}  // namespace hvd::cli
