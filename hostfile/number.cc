// SPDX-License-Identifier: Apache-2.0
#include "hostfile/number.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace hvd {
namespace {

bool IsWholeNumber(absl::string_view text) {
  if (absl::StartsWith(text, "-") || absl::StartsWith(text, "+")) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == absl::string_view::npos;
}

}  // namespace

absl::StatusOr<int> ParseNumber(const SourceLine& line, absl::string_view text,
                                const NumberRule& rule) {
  const std::string example = absl::StrCat("write a whole number from 1 to ", rule.most);
  if (text.empty()) {
    return line.ErrorAt(text, absl::StrCat("the number of ", rule.what, " is missing"), example);
  }
  if (!IsWholeNumber(text)) {
    return line.ErrorAt(text, absl::StrCat(rule.what, " must be a number, not ", Quoted(text)),
                        example);
  }
  int value = 0;
  const bool fits = absl::SimpleAtoi(text, &value);
  if (text.front() == '-' || (fits && value < 1)) {
    return line.ErrorAt(
        text, absl::StrCat(rule.what, " must be at least 1, not ", text.substr(0, 20)), example);
  }
  if (!fits || value > rule.most) {
    return line.ErrorAt(
        text, absl::StrCat(rule.what, " must be at most ", rule.most, ", not ", text.substr(0, 20)),
        example);
  }
  return value;
}

}  // namespace hvd
