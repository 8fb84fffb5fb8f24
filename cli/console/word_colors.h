// SPDX-License-Identifier: Apache-2.0
// hvdrun's own words in colour, for a terminal: whose they are, what is wrong, what to do next.
#pragma once

#include <string>
#include <string_view>

namespace hvd::cli {

enum class Tone {
  kNotice,  // the job goes on
  kError,   // it does not, or did not begin
};

// `lines` are printable.
std::string ColorWords(std::string_view lines, Tone tone);

}  // namespace hvd::cli
