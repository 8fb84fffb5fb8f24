// SPDX-License-Identifier: Apache-2.0
// Values as launchers' stores can hold them: hexadecimal digits, since some of the stores end a
// value at a blank, and some at a zero byte. Pure.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace hvd::rt {

std::string ValueText(absl::string_view bytes);
// Nothing: it is not such a text.
std::optional<std::string> ParseValueText(absl::string_view text);

}  // namespace hvd::rt
