// SPDX-License-Identifier: Apache-2.0
#include "cli/membership/faults/link_words.h"

#include "absl/strings/str_cat.h"

namespace hvd::cli {

std::string SayLink(const std::string& one, const std::string& other, const std::string& why) {
  return absl::StrCat("no data passes between ", one, " and ", other, why.empty() ? "" : ": ", why);
}

}  // namespace hvd::cli
