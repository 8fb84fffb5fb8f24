// SPDX-License-Identifier: Apache-2.0
// How a process ended that is no child of ours: its parent alone is told, and may keep it to
// itself.
#pragma once

#include <optional>
#include <string>

namespace hvd::daemon {

// As waitpid gives it; empty: it lives, or its parent has taken it and this kernel keeps nothing
// (before 6.15). `pidfd` was opened while it lived.
std::optional<int> EndStatus(int pidfd, int pid);

// "bash"; empty: there is none.
std::string ProcessName(int pid);

}  // namespace hvd::daemon
