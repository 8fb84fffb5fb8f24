// SPDX-License-Identifier: Apache-2.0
// Which network interfaces carry traffic between hosts. Which of them leads to a peer nobody knows
// before it is tried: TCP offers all of them and tries them in an order that is decided here. UCX
// tries nothing, and gets those that are likely.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace hvd::rt {

struct NetInterface {
  std::string name;
  bool is_loopback = false;
  bool has_default_route = false;
  // As text, IPv4 first; without those of IPv6 that hold on one link only.
  std::vector<std::string> addresses = {};
  bool has_carrier = true;  // something is at the other end of its cable
};

// An address of this host, in figures, and the interface that has it.
struct NetAddress {
  std::string host;
  std::string device;
};

// The network interfaces and RDMA ports that this host has.
struct NetDevices {
  std::vector<NetInterface> interfaces;
  std::vector<std::string> rdma_ports;  // active ones, as UCX names them ("mlx5_0:1")
};

// Returns the interfaces that are up and have an address, in this network namespace.
std::vector<NetInterface> ListNetInterfaces();
std::vector<std::string> ListRdmaPorts(const std::string& sys_folder = "/sys/class/infiniband");

// The interfaces for UCX: those with the default route, else all that are not a container's or a
// virtual machine's, else any, loopback last.
std::vector<std::string> ChooseInterfaces(absl::Span<const NetInterface> interfaces);

// The names in a list as users write it, "eth0,mlx5_0:1".
std::vector<std::string> DeviceNames(const std::string& list);
// InvalidArgument when this host has none of the devices that the user chose: no peer could be
// reached. One list serves all hosts, whose devices may have other names: one that is here is
// enough. UCX's own words, "all" and "^eth0", are here everywhere.
absl::Status CheckChosenDevices(const std::vector<std::string>& chosen, const NetDevices& has);

// As this host calls itself, for messages; without spaces.
std::string OwnHostName();

// Where TCP listens, and what is offered to peers, the likeliest first: the user's choice (the
// names; all; all but ^those), else every address of this host but loopback's. `reached_at`: the
// one by which the remote shell has come; empty: none has.
absl::StatusOr<std::vector<NetAddress>> AddressesFor(const std::string& chosen,
                                                     const std::string& reached_at,
                                                     const NetDevices& has);

}  // namespace hvd::rt
