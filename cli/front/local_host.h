// SPDX-License-Identifier: Apache-2.0
// Is this host of the job the machine that hvdrun runs on? Then it needs no remote shell.
#pragma once

#include <string>

#include "cli/front/world.h"
#include "hostfile/host_slots.h"

namespace hvd::cli {

// "localhost", 127.*, ::1, an own name or an address of an own interface. A host with a port or
// with another user of its own is reached through the remote shell whatever its name.
bool IsLocalHost(const HostSlots& host, const FrontWorld& world);

}  // namespace hvd::cli
