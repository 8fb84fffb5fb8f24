// SPDX-License-Identifier: Apache-2.0
// Which host is this? For the hello: two daemons of one job with the same answer share its cores.
#pragma once

#include <string>

namespace hvd {

// The running kernel, the machine and the namespaces that hvdd sees, as one word of letters,
// digits,
// '.', '-' and '_'. Containers and simulated hosts on one machine differ; so do machines made from
// one snapshot, unless also their names are equal. Empty: /proc does not say.
std::string HostIdentity();

}  // namespace hvd
