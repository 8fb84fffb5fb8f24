// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/ucx/ucx_settings.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace hvd::rt {
namespace {

// Over TCP messages up to this are sent at once. A rendezvous asks the receiver first, and its
// answer queues behind all that the receiver sends itself, so that a full-duplex link is half idle.
constexpr char kTcpRendezvous[] = "1m";
constexpr char kRdmaRendezvous[] = "32k";
// The size of UCX's buffers, each of which goes into one call of the kernel. Its own 8 KB cut
// messages into as many; here the largest segment of a ring fits in, with UCX's header.
constexpr char kTcpSegment[] = "256k";

// UCX names RDMA ports with their number, "mlx5_0:1", and network interfaces without.
bool HasRdmaPort(const std::string& devices) { return absl::StrContains(devices, ':'); }

bool IsTcpOnly(const std::string& tls) {
  for (const absl::string_view one : absl::StrSplit(tls, ',', absl::SkipWhitespace())) {
    if (one != "tcp" && one != "self") return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<UcxSettings> ChooseUcxSettings(const UcxChoices& choices, const NetDevices& has) {
  std::vector<std::string> chosen = DeviceNames(choices.net_devices);
  if (chosen.empty()) {
    chosen = ChooseInterfaces(has.interfaces);
    chosen.insert(chosen.end(), has.rdma_ports.begin(), has.rdma_ports.end());
  } else if (absl::Status known = CheckChosenDevices(chosen, has); !known.ok()) {
    return known;
  }
  const std::string devices = absl::StrJoin(chosen, ",");
  const std::string tls =
      !choices.tls.empty() ? choices.tls : (HasRdmaPort(devices) ? "rc,ud,tcp,self" : "tcp,self");
  const bool rdma = HasRdmaPort(devices) && !IsTcpOnly(tls);
  UcxSettings settings;
  settings.devices = "over " + devices + " with " + tls;
  settings.values = {
      {"NET_DEVICES", devices},
      {"TLS", tls},
      {"RNDV_THRESH", rdma ? kRdmaRendezvous : kTcpRendezvous},
      {"TX_SEG_SIZE", kTcpSegment},  // TCP's; UCX 1.13 knows it by this name here,
      {"RX_SEG_SIZE", kTcpSegment},
      {"TCP_TX_SEG_SIZE", kTcpSegment},  // newer ones by this
      {"TCP_RX_SEG_SIZE", kTcpSegment},
      {"MAX_EAGER_RAILS", "1"},
      {"TCP_MAX_NUM_EPS", "inf"},
      {"ADDRESS_VERSION", "v2"},
      // Otherwise an interface without endpoints is watched by UCX's own thread alone, which does
      // not wake a sleeper on the event descriptor: a rank that only receives would sleep on.
      {"ADAPTIVE_PROGRESS", "n"},
  };
  return settings;
}

}  // namespace hvd::rt
