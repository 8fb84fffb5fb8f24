// SPDX-License-Identifier: Apache-2.0
// The environment and the devices that a host brings to a job, as they are read there.
#pragma once

#include <string>
#include <vector>

#include "placement/host_plan.h"

namespace hvd::daemon {

struct HostFacts {
  std::vector<std::string> environment;  // hvdd's
  HostDevices devices;
};

HostFacts ReadHostFacts(bool with_gpus);

}  // namespace hvd::daemon
