// SPDX-License-Identifier: Apache-2.0
#include "cli/membership/faults/bad_links.h"

namespace hvd::cli {

int BadLinks::Of(const std::string& host) const {
  return static_cast<int>(std::count_if(failed_.begin(), failed_.end(), [&host](const auto& entry) {
    return entry.first.first == host || entry.first.second == host;
  }));
}

}  // namespace hvd::cli
