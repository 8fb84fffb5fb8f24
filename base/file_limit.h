// SPDX-License-Identifier: Apache-2.0
// How many files this process may have open. Any thread.
#pragma once

#include <sys/resource.h>

namespace hvd {

// Raises the soft limit of this process to the hard one; returns what was in force before.
rlimit RaiseFileLimit();

// The hard limit: RaiseFileLimit allows so many at most.
rlim_t MostFiles();

}  // namespace hvd
