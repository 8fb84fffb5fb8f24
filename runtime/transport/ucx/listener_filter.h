// SPDX-License-Identifier: Apache-2.0
// Keeps strangers' hosts from UCX's listening sockets. UCX trusts whoever connects: 16 bytes from
// anybody end the process. The system therefore drops requests to connect that do not come from the
// job's hosts, before UCX sees them. Other users of these hosts still get through: there is no
// proof, as TCP of our own has.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace hvd::rt {

// For a listening socket: drops requests to connect but from these addresses (in figures). Packets
// that belong to a connection pass, since accepted sockets inherit the program. Pure.
// More addresses than the system's programs have room for: lets all in.
std::vector<sock_filter> FilterFor(const std::vector<std::string>& hosts);
// Drops all requests to connect.
std::vector<sock_filter> FilterForNobody();

absl::Status AttachFilter(int fd, std::vector<sock_filter> program);

// This process's descriptors that listen on TCP.
std::vector<int> ListeningSockets();
// Returns the listeners that were not there `before` and whose port is in a UCX worker's address,
// which has it in network order.
std::vector<int> NewListeners(const std::vector<int>& before, const std::string& worker_address);

}  // namespace hvd::rt
