// SPDX-License-Identifier: Apache-2.0
// How a process ended, in words that follow its name: "rank 3 was killed by signal 9 (Killed)".
#pragma once

#include <string>

namespace hvd {

// "was killed by signal 9 (Killed)", "exited with code 7". `wait_status` is waitpid's.
std::string DescribeEnd(int wait_status);
// "SIGUSR1".
std::string NameSignal(int signal);
// The first of these alone.
std::string DescribeKill(int signal);

}  // namespace hvd
