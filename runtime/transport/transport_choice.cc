// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/transport_choice.h"

#include <algorithm>

namespace hvd::rt {
namespace {

bool WantsRdma(const std::string& net_devices, const std::vector<std::string>& ports) {
  const std::vector<std::string> names = DeviceNames(net_devices);
  if (names.empty()) return true;
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return name == "all" || name[0] == '^' ||
           std::find(ports.begin(), ports.end(), name) != ports.end();
  });
}

}  // namespace

TransportChoice ChooseTransport(const TransportWishes& wishes, const NetDevices& has,
                                bool has_ucx) {
  if (!wishes.transport.empty()) return {wishes.transport, "HVD_TRANSPORT says so"};
  if (has.rdma_ports.empty()) return {"tcp", "no RDMA port is active"};
  if (!WantsRdma(wishes.net_devices, has.rdma_ports)) return {"tcp", "no RDMA port is chosen"};
  if (!has_ucx) return {"tcp", "UCX is not installed"};
  return {"ucx", "RDMA port " + has.rdma_ports[0] + " is active"};
}

}  // namespace hvd::rt
