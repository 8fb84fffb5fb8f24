// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/net_devices.h"

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

namespace hvd {
namespace {

using Names = std::vector<std::string>;

TEST_CASE("the interface with the default route is chosen") {
  CHECK(ChooseInterfaces({{"lo", true, false}, {"eth0", false, true}, {"eth1", false, false}}) ==
        Names{"eth0"});
}

TEST_CASE("without a default route all real ones are; bridges of containers are not") {
  CHECK(ChooseInterfaces({{"lo", true, false},
                          {"docker0", false, false},
                          {"eth1", false, false},
                          {"virbr0", false, false},
                          {"ib0", false, false}}) == Names{"eth1", "ib0"});
}

TEST_CASE("a virtual link is better than none, and loopback than nothing") {
  CHECK(ChooseInterfaces({{"lo", true, false}, {"veth1", false, false}}) == Names{"veth1"});
  CHECK(ChooseInterfaces({{"lo", true, false}}) == Names{"lo"});
  CHECK(ChooseInterfaces({}).empty());
}

TEST_CASE("this machine has interfaces, with loopback marked") {
  bool has_loopback = false;
  for (const NetInterface& one : ListNetInterfaces()) {
    has_loopback |= one.is_loopback && one.name == "lo" && one.addresses[0] == "127.0.0.1";
  }
  CHECK(has_loopback);
}

TEST_CASE(
    "TCP goes over the chosen interfaces that this host has, or over those of the user's word") {
  const NetDevices here = {{{"lo", true, false, {"127.0.0.1", "::1"}},
                            {"eth0", false, true, {"10.0.0.1"}},
                            {"eth1", false, false, {"10.1.0.1"}},
                            {"tun0", false, false, {}}},
                           {"mlx5_0:1"}};
  const auto names = [&](const std::string& chosen) {
    const auto found = InterfacesFor(chosen, here);
    if (!found.ok()) return Names{std::string(found.status().message())};
    Names all;
    for (const NetInterface& one : *found) all.push_back(one.name);
    return all;
  };
  CHECK(names("") == Names{"eth0"});
  CHECK(names("ens3, eth1") == Names{"eth1"});
  CHECK(names("all") == Names{"lo", "eth0", "eth1"});
  CHECK(names("^lo,eth0") == Names{"eth1"});
  CHECK(names("nope0")[0].find("network devices nope0 (--network-interfaces") == 0);
  CHECK(names("tun0")[0].find("no interface of tun0 has an address") == 0);
  CHECK(names("mlx5_0:1")[0].find("no interface of mlx5_0:1 has an address") == 0);
}

TEST_CASE("only active RDMA ports are named") {
  char name[] = "/tmp/hvd-rdma-XXXXXX";
  const std::filesystem::path root = mkdtemp(name);
  for (const auto& [port, state] :
       {std::pair{"mlx5_1/ports/1", "4: ACTIVE"}, std::pair{"mlx5_0/ports/1", "1: DOWN"},
        std::pair{"mlx5_0/ports/2", "4: ACTIVE"}}) {
    std::filesystem::create_directories(root / port);
    std::ofstream(root / port / "state") << state << "\n";
  }
  CHECK(ListRdmaPorts(root) == Names{"mlx5_0:2", "mlx5_1:1"});
  std::filesystem::remove_all(root);
  CHECK(ListRdmaPorts(root).empty());
}

}  // namespace
}  // namespace hvd
