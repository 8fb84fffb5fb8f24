// SPDX-License-Identifier: Apache-2.0
// The words on a launch for the driver and for a person: what this host gives to its slots, and
// what may go wrong here.
#pragma once

#include <string>
#include <vector>

#include "daemon/job/host_job.h"
#include "daemon/shim/shim_start.h"
#include "hvd/v1/link_a.pb.h"

namespace hvd::daemon {

v1::Event LaunchedEvent(const HostJob& job, ContainmentLevel level);
v1::Event LaunchFailedEvent(int exit_code, const std::string& message);
// Limits below the launcher's, what the shim could not have, how shares had to be made.
std::vector<std::string> LaunchNotes(const HostJob& job, const ShimProcess& shim);
// Of ranks that another launcher has started; empty: none is waited for.
std::string AwaitedNote(const HostJob& job);

}  // namespace hvd::daemon
