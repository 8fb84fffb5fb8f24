// Which network devices UCX may use. It tries every interface that is up and never asks whether the
// peers are behind it (docker0, virbr0: refused or hung), so it is told.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"

namespace hvd {

struct NetInterface {
  std::string name;
  bool is_loopback = false;
  bool has_default_route = false;
};

// Those that are up and have an address, in this network namespace.
std::vector<NetInterface> ListNetInterfaces();
// Active RDMA ports as UCX names them ("mlx5_0:1").
std::vector<std::string> ListRdmaPorts(const std::string& sys_folder = "/sys/class/infiniband");

// The interfaces for traffic between hosts, as UCX_NET_DEVICES takes them: those with the default
// route, else all that are not a container's or a virtual machine's, else any, loopback last.
std::vector<std::string> ChooseInterfaces(absl::Span<const NetInterface> interfaces);

}  // namespace hvd
