// SPDX-License-Identifier: Apache-2.0
// Why an agent that hvdrun knows by name did not get to a host: its words in, cause and remedy out.
// Pure.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "cli/reach/ssh_failure.h"

namespace hvd::cli {

// As ssh_failure's rows: what stands in capitals (HOST, LOGIN, SHELL) is still to be replaced.
struct AgentFault {
  StartFault fault = StartFault::kUnknown;
  const char* cause = "";
  const char* remedy = "";
};

// Nothing: the words are not known, or `shell` is no agent's name.
std::optional<AgentFault> FindAgentFault(absl::string_view shell, absl::string_view errors);

// By which a manager says, through its agent, that it ends the job: "Slurm: STEP 7.0 ON n1
// CANCELLED AT 2026-11-27T06:51:56". Empty: nothing of that is in the text.
std::string FindManagerStop(absl::string_view errors);

}  // namespace hvd::cli
