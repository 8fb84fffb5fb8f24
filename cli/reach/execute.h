// SPDX-License-Identifier: Apache-2.0
// What a parent has of the child that it has forked, and the child's last steps before exec.
#pragma once

#include <sys/resource.h>

#include <string>
#include <vector>

#include "base/descriptor.h"

namespace hvd::cli {

struct Execution {
  const std::vector<std::string>& argv;
  int input = 0;  // its descriptors, ours
  int output = 1;
  int errors = 2;
  rlimit files = {};  // how many it may have open
};

// Nothing of ours but these descriptors reaches the program: neither others nor ignored or blocked
// signals. Ends with 127, and a line that begins "hvdrun-cannot-execute:", when there is none. The
// caller is single-threaded.
[[noreturn]] void Execute(const Execution& execution);

// The pidfd of a child that was just forked. Where there can be none the child is ended and reaped,
// and errno says why.
Descriptor HoldChild(int pid);

}  // namespace hvd::cli
