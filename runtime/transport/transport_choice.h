// SPDX-License-Identifier: Apache-2.0
// Chooses the transport that carries tensors between hosts. Pure.
#pragma once

#include <string>

#include "runtime/transport/net_devices.h"

namespace hvd::rt {

struct TransportWishes {
  std::string transport;    // "tcp", "ucx"; empty: chosen
  std::string net_devices;  // as users write them; empty: chosen
};

struct TransportChoice {
  std::string kind;    // "tcp", "ucx"
  std::string reason;  // "no active RDMA port"
};

// UCX where there is RDMA to be had, and the user has not chosen interfaces without it; else TCP.
TransportChoice ChooseTransport(const TransportWishes& wishes, const NetDevices& has, bool has_ucx);

}  // namespace hvd::rt
