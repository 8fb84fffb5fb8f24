// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace hvd {

// Looks an environment variable up; null when it is not set.
using EnvironmentLookup = std::function<const char*(const char*)>;

}  // namespace hvd
