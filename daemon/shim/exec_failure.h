// SPDX-License-Identifier: Apache-2.0
// Why this host refused to start a process, in words for people, and what to do about it.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "daemon/shim/spawn_order.h"

namespace hvd::daemon {

struct ExecFailure {
  enum class Step : int { kDirectory, kDescriptors, kCommand, kProcess } step;
  int error;  // errno
};

// "cannot run 'foo' …": for people; `error` is errno of the step.
std::string DescribeExecFailure(const ExecFailure& failure, const SpawnOrder& order);

// 127 not found, 126 found but not runnable, 125 anything before the command.
int ExecFailureCode(const ExecFailure& failure);

// Returns the remedy for a call that a limit of this host has refused: the end of a message about
// this errno; empty where no limit is behind it.
absl::string_view RemedyFor(int error);

}  // namespace hvd::daemon
