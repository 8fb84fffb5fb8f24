// SPDX-License-Identifier: Apache-2.0
// Ways for a worker to behave, for tests of what becomes of its job.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace victim {

using Arguments = std::vector<std::string>;

// A mode works with its arguments and returns the process's exit code. It may throw hvd::Error.
using Mode = std::function<int(const Arguments&)>;

const std::map<std::string, Mode>& StayingModes();
const std::map<std::string, Mode>& LeavingModes();  // a rank leaves while others wait for it
const std::map<std::string, Mode>& RefusedModes();  // a call fails, and the rank goes on

// Helpers of all modes: argument `i` as a number, a line with the rank's number, a sum over all
// ranks.
int Number(const Arguments& arguments, size_t i, int otherwise);
void Say(const std::string& text);
void Sum();
// Joins, and tells the test that all have.
void Join();
// Waits for the end of a process of this host, but not for ever.
void AwaitEnd(pid_t pid);

}  // namespace victim
