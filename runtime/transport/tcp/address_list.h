// SPDX-License-Identifier: Apache-2.0
// Where a rank can be reached, as it travels between ranks: the host's name, then its addresses,
// the likeliest first. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/transport/tcp/socket.h"

namespace hvd::rt {

struct PeerAddress {
  SocketAddress at;
  std::string device = {};  // the interface of that host, for messages
};

struct AddressList {
  std::string host;  // for messages
  std::vector<PeerAddress> addresses;
};

std::string EncodeAddressList(const AddressList& list);
absl::StatusOr<AddressList> DecodeAddressList(const std::string& text);

// The order in which to call them: `likely` first, those of `own` (in figures, without ports) last.
// Hosts behind NAT may all have the same address, and who calls it there calls itself.
std::vector<PeerAddress> InCallingOrder(std::vector<PeerAddress> addresses,
                                        const std::string& likely,
                                        const std::vector<std::string>& own);

}  // namespace hvd::rt
