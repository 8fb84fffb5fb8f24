// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/ucx/ucx_settings.h"

#include <catch2/catch.hpp>

namespace hvd::rt {
namespace {

std::string ValueOf(const absl::StatusOr<UcxSettings>& settings, const std::string& name) {
  if (!settings.ok()) return settings.status().ToString();
  for (const auto& [key, value] : settings->values) {
    if (key == name) return value;
  }
  return "none";
}

const NetDevices kEthernet = {{{"lo", true, false}, {"eth0", false, true}}, {}};
const NetDevices kWithRdma = {{{"lo", true, false}, {"eth0", false, true}}, {"mlx5_0:1"}};

TEST_CASE("a host without RDMA talks TCP, and sends up to a megabyte without asking") {
  const auto settings = ChooseUcxSettings({}, kEthernet);
  CHECK(ValueOf(settings, "NET_DEVICES") == "eth0");
  CHECK(ValueOf(settings, "TLS") == "tcp,self");
  CHECK(ValueOf(settings, "RNDV_THRESH") == "1m");
  CHECK(settings->devices == "over eth0 with tcp,self");
}

TEST_CASE("an active RDMA port is used beside TCP, and asks early") {
  const auto settings = ChooseUcxSettings({}, kWithRdma);
  CHECK(ValueOf(settings, "NET_DEVICES") == "eth0,mlx5_0:1");
  CHECK(ValueOf(settings, "TLS") == "rc,ud,tcp,self");
  CHECK(ValueOf(settings, "RNDV_THRESH") == "32k");
}

TEST_CASE("who chooses TCP, or an interface, on a host with RDMA gets TCP's threshold") {
  CHECK(ValueOf(ChooseUcxSettings({"", "tcp"}, kWithRdma), "RNDV_THRESH") == "1m");
  CHECK(ValueOf(ChooseUcxSettings({"", "self,tcp"}, kWithRdma), "RNDV_THRESH") == "1m");
  const auto interface = ChooseUcxSettings({"eth0", ""}, kWithRdma);
  CHECK(ValueOf(interface, "NET_DEVICES") == "eth0");
  CHECK(ValueOf(interface, "TLS") == "tcp,self");
  CHECK(ValueOf(interface, "RNDV_THRESH") == "1m");
}

TEST_CASE("what the user chose is taken as it is") {
  const auto settings = ChooseUcxSettings({"mlx5_0:1", "dc,self"}, kWithRdma);
  CHECK(ValueOf(settings, "NET_DEVICES") == "mlx5_0:1");
  CHECK(ValueOf(settings, "TLS") == "dc,self");
  CHECK(ValueOf(settings, "RNDV_THRESH") == "32k");
}

TEST_CASE("one list of devices may serve hosts that name theirs otherwise") {
  CHECK(ValueOf(ChooseUcxSettings({" ens3, eth0,", ""}, kEthernet), "NET_DEVICES") == "ens3,eth0");
  CHECK(ValueOf(ChooseUcxSettings({"all", ""}, kEthernet), "NET_DEVICES") == "all");
}

TEST_CASE("devices of which a host has none are refused, with those that it has") {
  const absl::Status refused = ChooseUcxSettings({"nope0,mlx5_7:1", ""}, kWithRdma).status();
  CHECK(absl::IsInvalidArgument(refused));
  CHECK(
      refused.message() ==
      "network devices nope0,mlx5_7:1 (--network-interfaces, HVD_NET_DEVICES or UCX_NET_DEVICES): "
      "this host has none of them that is up and has an address; it has lo, eth0, mlx5_0:1");
}

}  // namespace
}  // namespace hvd::rt
