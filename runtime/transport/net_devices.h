// SPDX-License-Identifier: Apache-2.0
// Which network interfaces carry traffic between hosts. Nobody asks whether the peers are behind
// one (docker0, virbr0: refused or hung), so it is decided here.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace hvd {

struct NetInterface {
  std::string name;
  bool is_loopback = false;
  bool has_default_route = false;
  // As text, IPv4 first; without those of IPv6 that hold on one link only.
  std::vector<std::string> addresses = {};
};

// What this host has.
struct NetDevices {
  std::vector<NetInterface> interfaces;
  std::vector<std::string> rdma_ports;  // active ones, as UCX names them ("mlx5_0:1")
};

// Those that are up and have an address, in this network namespace.
std::vector<NetInterface> ListNetInterfaces();
std::vector<std::string> ListRdmaPorts(const std::string& sys_folder = "/sys/class/infiniband");

// The interfaces for traffic between hosts: those with the default route, else all that are not a
// container's or a virtual machine's, else any, loopback last.
std::vector<std::string> ChooseInterfaces(absl::Span<const NetInterface> interfaces);

// The names in a list as users write it, "eth0,mlx5_0:1".
std::vector<std::string> DeviceNames(const std::string& list);
// InvalidArgument when this host has none of the devices that the user chose: no peer could be
// reached. One list serves all hosts, whose devices may have other names: one that is here is
// enough. UCX's own words, "all" and "^eth0", are here everywhere.
absl::Status CheckChosenDevices(const std::vector<std::string>& chosen, const NetDevices& has);

// The interfaces that carry TCP: the user's choice (the names; all; all but ^those), else chosen.
absl::StatusOr<std::vector<NetInterface>> InterfacesFor(const std::string& chosen,
                                                        const NetDevices& has);

}  // namespace hvd
