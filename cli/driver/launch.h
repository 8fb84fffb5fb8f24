// SPDX-License-Identifier: Apache-2.0
// The PrepareHost command for one host, from what the user asked for. Pure but for
// ReadLauncherLimits.
#pragma once

#include <string>
#include <vector>

#include "cli/front/words/run_options.h"
#include "hvd/v1/link_a.pb.h"

namespace hvd::cli {

// The limits that hvdrun itself was given and its workers are to have.
struct LauncherLimits {
  uint32_t umask = 022;
  std::vector<v1::Limit> limits;
};
LauncherLimits ReadLauncherLimits();

struct JobSecrets {
  std::string job;     // 32 hex digits
  std::string marker;  // 32 hex digits
  std::string epoch;   // 32 random bytes: never shown, never in an argv
};
// False when the system gives no random bytes.
bool MakeJobSecrets(JobSecrets* secrets);

struct PreparedHost {
  int host = 0;  // the driver's number
  std::string name;
  int shares = 1;
};
v1::PrepareHost MakePrepare(const RunOptions& options, const JobSecrets& secrets,
                            const LauncherLimits& limits, const PreparedHost& host);

}  // namespace hvd::cli
