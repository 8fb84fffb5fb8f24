// How many files a process of ours may have open: two a host in the driver.
#pragma once

#include <sys/resource.h>

#include "absl/status/status.h"

namespace hvd {

// Raises the soft limit of this process to the hard one; returns what was in force before.
rlimit RaiseFileLimit();

// Whether the driver of a job of so many hosts can live within the hard limit. An error says what
// to raise.
absl::Status CheckFileLimit(size_t hosts);

}  // namespace hvd
