// SPDX-License-Identifier: Apache-2.0
// Keeps strangers' hosts from UCX's listening sockets. UCX trusts whoever connects: 16 bytes from
// anybody end the process. So the system drops what does not come from the job's hosts, before UCX
// sees it. Other users of these hosts still get through: there is no proof, as TCP of our own has.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace hvd {

// For a listening socket: drops requests to connect but from these addresses (in figures). What
// belongs to a connection passes, since accepted sockets inherit the program. Pure.
// More addresses than the system's programs have room for: lets all in.
std::vector<sock_filter> FilterFor(const std::vector<std::string>& hosts);
// Drops all requests to connect.
std::vector<sock_filter> FilterForNobody();

absl::Status AttachFilter(int fd, std::vector<sock_filter> program);

// This process's descriptors that listen on TCP.
std::vector<int> ListeningSockets();
// Of those that were not there `before`, the ones whose port is in a UCX worker's address: it has
// them in network order.
std::vector<int> NewListeners(const std::vector<int>& before, const std::string& worker_address);

}  // namespace hvd
