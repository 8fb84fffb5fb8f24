// SPDX-License-Identifier: Apache-2.0
// The processes above this one, as /proc tells.
#pragma once

#include <string>

namespace hvd::rt {

// "PID.BIRTH" of the nearest process above this one whose program has this name (at most 15 bytes);
// empty: there is none within a few steps, or it cannot be seen.
std::string FindAncestor(const char* program);

}  // namespace hvd::rt
