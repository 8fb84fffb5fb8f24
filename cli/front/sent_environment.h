// SPDX-License-Identifier: Apache-2.0
// What of hvdrun's environment the workers get, wherever they are.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace hvd::cli {

struct SentEnvironment {
  std::vector<std::string> environment;  // NAME=VALUE, each name once
  std::vector<std::string> own;          // names that beat the host's own values (-x)
};

// `inherited` minus what belongs to a host, a login or another launcher's process, plus the wishes:
// NAME (as it is here), NAME=VALUE, or a glob of names with * and ?.
absl::StatusOr<SentEnvironment> ChooseEnvironment(absl::Span<const std::string> inherited,
                                                  absl::Span<const std::string> wishes);

}  // namespace hvd::cli
