#include "runtime/transport/ucx/ucx_settings.h"

#include <catch2/catch.hpp>

namespace hvd {
namespace {

std::string ValueOf(const UcxSettings& settings, const std::string& name) {
  for (const auto& [key, value] : settings.values) {
    if (key == name) return value;
  }
  return "none";
}

const UcxDevices kEthernet = {{{"lo", true, false}, {"eth0", false, true}}, {}};
const UcxDevices kWithRdma = {{{"lo", true, false}, {"eth0", false, true}}, {"mlx5_0:1"}};

TEST_CASE("a host without RDMA talks TCP, and sends up to a megabyte without asking") {
  const UcxSettings settings = ChooseUcxSettings({}, kEthernet);
  CHECK(ValueOf(settings, "NET_DEVICES") == "eth0");
  CHECK(ValueOf(settings, "TLS") == "tcp,self");
  CHECK(ValueOf(settings, "RNDV_THRESH") == "1m");
  CHECK(settings.devices == "over eth0 with tcp,self");
}

TEST_CASE("an active RDMA port is used beside TCP, and asks early") {
  const UcxSettings settings = ChooseUcxSettings({}, kWithRdma);
  CHECK(ValueOf(settings, "NET_DEVICES") == "eth0,mlx5_0:1");
  CHECK(ValueOf(settings, "TLS") == "rc,ud,tcp,self");
  CHECK(ValueOf(settings, "RNDV_THRESH") == "32k");
}

TEST_CASE("who chooses TCP, or an interface, on a host with RDMA gets TCP's threshold") {
  CHECK(ValueOf(ChooseUcxSettings({"", "tcp"}, kWithRdma), "RNDV_THRESH") == "1m");
  CHECK(ValueOf(ChooseUcxSettings({"", "self,tcp"}, kWithRdma), "RNDV_THRESH") == "1m");
  const UcxSettings interface = ChooseUcxSettings({"eth0", ""}, kWithRdma);
  CHECK(ValueOf(interface, "NET_DEVICES") == "eth0");
  CHECK(ValueOf(interface, "TLS") == "tcp,self");
  CHECK(ValueOf(interface, "RNDV_THRESH") == "1m");
}

TEST_CASE("what the user chose is taken as it is") {
  const UcxSettings settings = ChooseUcxSettings({"mlx5_1:1", "dc,self"}, kWithRdma);
  CHECK(ValueOf(settings, "NET_DEVICES") == "mlx5_1:1");
  CHECK(ValueOf(settings, "TLS") == "dc,self");
  CHECK(ValueOf(settings, "RNDV_THRESH") == "32k");
}

}  // namespace
}  // namespace hvd
