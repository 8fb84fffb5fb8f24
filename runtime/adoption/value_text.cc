// SPDX-License-Identifier: Apache-2.0
#include "runtime/adoption/value_text.h"

#include "absl/strings/escaping.h"

namespace hvd::rt {
namespace {

constexpr absl::string_view kDigits = "0123456789abcdef";

}  // namespace

std::string ValueText(absl::string_view bytes) { return absl::BytesToHexString(bytes); }

// Abseil's own reader does not look whether they are digits.
std::optional<std::string> ParseValueText(absl::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  if (text.find_first_not_of(kDigits) != absl::string_view::npos) return std::nullopt;
  return absl::HexStringToBytes(text);
}

}  // namespace hvd::rt
