// SPDX-License-Identifier: Apache-2.0
// Starts hvdrun and hvdd from within a program: each leaves the program's process tree at once, so
// that the program never meets a child that it has not made.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/descriptor.h"

namespace hvd::rt {

struct HelperOrder {
  std::vector<std::string> argv;         // a path first, else looked for on PATH
  std::vector<std::string> environment;  // NAME=VALUE, all of it
  // The descriptors that it finds at 0 (invalid: /dev/null), at 1 (invalid: this process's own) and
  // at 3 (invalid: none). No other but this process's stderr is passed on.
  int in = -1, out = -1, life = -1;
};

// Returns when the process that was started has ended, which leaves the one that goes on.
// Unavailable: it could not be started, or has refused; its words are on stderr.
absl::Status StartHelper(const HelperOrder& order);

// The programs beside the library at `library`: "hvdrun", "hvdd". Only its name: PATH is to find
// it.
std::string ProgramBeside(const std::string& library, const std::string& name);

}  // namespace hvd::rt
