// SPDX-License-Identifier: Apache-2.0
// The settings that UCX is told: it guesses speeds (100 Mbit/s for lo) and picks lanes and
// thresholds by them. Pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/transport/net_devices.h"

namespace hvd::rt {

// The user's choices; empty: chosen here.
struct UcxChoices {
  std::string net_devices;  // "eth0,mlx5_0:1"
  std::string tls;          // UCX's transports
};

struct UcxSettings {
  std::vector<std::pair<std::string, std::string>> values;  // by UCX's names without UCX_
  std::string devices;  // "over eth0 with tcp,self", for messages
};

// InvalidArgument when this host has none of the devices that the user chose: UCX would find that
// no peer can be reached.
absl::StatusOr<UcxSettings> ChooseUcxSettings(const UcxChoices& choices, const NetDevices& has);

}  // namespace hvd::rt
