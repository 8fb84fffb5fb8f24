// SPDX-License-Identifier: Apache-2.0
// Where a rank can be reached, as it travels between ranks: the host's name, then its addresses.
// Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/transport/tcp/socket.h"

namespace hvd {

struct AddressList {
  std::string host;  // for messages
  std::vector<SocketAddress> addresses;
};

std::string EncodeAddressList(const AddressList& list);
absl::StatusOr<AddressList> DecodeAddressList(const std::string& text);

}  // namespace hvd
