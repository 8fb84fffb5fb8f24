// SPDX-License-Identifier: Apache-2.0
// A remote shell that carries its bytes over a TCP connection of its own, and lets the kernel
// gather small writes (srun), keeps back every second word of link A for 40 ms: Nagle's rule waits
// for the acknowledgement of the first, and the other side waits with that for words of its own.
#pragma once

#include <sys/types.h>

#include "base/descriptor.h"

namespace hvd::cli {

// Has the TCP connections of a child send what is written at once. Returns how many there were. It
// is a matter of speed alone, so a kernel that does not allow it (before 5.6, or where nobody may
// take another's descriptors) is no error.
int MakeSocketsPrompt(pid_t child, const Descriptor& pidfd);

}  // namespace hvd::cli
