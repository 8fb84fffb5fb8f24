#include "runtime/transport/ucx/ucx_settings.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace hvd {
namespace {

// Over TCP messages up to this are sent at once. A rendezvous asks the receiver first, and its
// answer queues behind all that the receiver sends itself, so that a full-duplex link is half idle.
constexpr char kTcpRendezvous[] = "1m";
constexpr char kRdmaRendezvous[] = "32k";
// Of UCX's buffers: what goes into one call of the kernel. Its own 8 KB cut messages into as many;
// here the largest segment of a ring fits in, with UCX's header.
constexpr char kTcpSegment[] = "256k";

// UCX names RDMA ports with their number, "mlx5_0:1", and network interfaces without.
bool HasRdmaPort(const std::string& devices) { return absl::StrContains(devices, ':'); }

bool IsTcpOnly(const std::string& tls) {
  for (const absl::string_view one : absl::StrSplit(tls, ',', absl::SkipWhitespace())) {
    if (one != "tcp" && one != "self") return false;
  }
  return true;
}

std::vector<std::string> DevicesOf(const UcxDevices& has) {
  std::vector<std::string> names;
  for (const NetInterface& one : has.interfaces) names.push_back(one.name);
  names.insert(names.end(), has.rdma_ports.begin(), has.rdma_ports.end());
  return names;
}

// One list serves all hosts, whose devices may have other names: one that is here is enough.
absl::Status CheckChosen(const std::vector<std::string>& chosen, const UcxDevices& has) {
  const std::vector<std::string> here = DevicesOf(has);
  for (const std::string& one : chosen) {
    const bool is_pattern = one == "all" || one[0] == '^';  // UCX's own words
    if (is_pattern || std::find(here.begin(), here.end(), one) != here.end()) {
      return absl::OkStatus();
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("network devices ", absl::StrJoin(chosen, ","),
                   " (--network-interfaces, HVD_NET_DEVICES or UCX_NET_DEVICES): this host has "
                   "none of them that is up and has an address; it has ",
                   here.empty() ? "no device at all" : absl::StrJoin(here, ", ")));
}

}  // namespace

absl::StatusOr<UcxSettings> ChooseUcxSettings(const UcxChoices& choices, const UcxDevices& has) {
  std::vector<std::string> chosen =
      absl::StrSplit(choices.net_devices, absl::ByAnyChar(", "), absl::SkipEmpty());
  if (chosen.empty()) {
    chosen = ChooseInterfaces(has.interfaces);
    chosen.insert(chosen.end(), has.rdma_ports.begin(), has.rdma_ports.end());
  } else if (absl::Status known = CheckChosen(chosen, has); !known.ok()) {
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
      // Else an interface without endpoints is watched by UCX's own thread alone, which does not
      // wake a sleeper on the event descriptor: a rank that only receives would sleep on.
      {"ADAPTIVE_PROGRESS", "n"},
  };
  return settings;
}

}  // namespace hvd
