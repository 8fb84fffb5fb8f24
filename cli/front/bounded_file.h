// SPDX-License-Identifier: Apache-2.0
// Reads what a user names as a hostfile or a config file, whatever it turns out to be.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace hvd::cli {

// The whole text, but never more than one byte over a hostfile's limit and never waiting longer
// than ten seconds for a pipe; the status's message is for the user. Works with <(command).
absl::StatusOr<std::string> ReadBoundedFile(const std::string& path);

}  // namespace hvd::cli
