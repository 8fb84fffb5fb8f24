// Ways for a worker to behave, for tests of what becomes of its job.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace victim {

using Arguments = std::vector<std::string>;

// What a mode does with its arguments; returns the process's exit code. May throw hvd::Error.
using Mode = std::function<int(const Arguments&)>;

const std::map<std::string, Mode>& Modes();

}  // namespace victim
