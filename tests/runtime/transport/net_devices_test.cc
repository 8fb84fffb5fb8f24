// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/net_devices.h"

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

namespace hvd::rt {
namespace {

using Names = std::vector<std::string>;

TEST_CASE("for UCX the interface with the default route is chosen") {
  CHECK(ChooseInterfaces({{"lo", true, false}, {"eth0", false, true}, {"eth1", false, false}}) ==
        Names{"eth0"});
}

TEST_CASE("for UCX all real ones are, without a default route; bridges of containers are not") {
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

// "eth0 10.0.0.1", …; or what is wrong.
Names Offered(const NetDevices& has, const std::string& chosen, const std::string& reached = "") {
  const auto found = AddressesFor(chosen, reached, has);
  if (!found.ok()) return Names{std::string(found.status().message())};
  Names all;
  for (const NetAddress& one : *found) all.push_back(one.device + " " + one.host);
  return all;
}

TEST_CASE("TCP is offered at every address, the likeliest first: whoever can reach one is served") {
  const NetDevices here = {{{"lo", true, false, {"127.0.0.1", "::1"}},
                            {"docker0", false, false, {"172.17.0.1"}},
                            {"eth2", false, false, {"10.2.0.1"}, false},
                            {"eth1", false, false, {"10.1.0.1", "fd00::1"}},
                            {"eth0", false, true, {"10.0.2.15"}},
                            {"tun0", false, false, {}}},
                           {}};
  CHECK(Offered(here, "") == Names{"eth0 10.0.2.15", "eth1 10.1.0.1", "eth1 fd00::1",
                                   "docker0 172.17.0.1", "eth2 10.2.0.1"});
}

TEST_CASE("TCP is offered first at the address by which the remote shell has come") {
  const NetDevices here = {{{"lo", true, false, {"127.0.0.1"}},
                            {"eth0", false, true, {"10.0.2.15"}},
                            {"eth1", false, false, {"10.1.0.1", "fd00::1"}}},
                           {}};
  CHECK(Offered(here, "", "fd00::1") == Names{"eth1 fd00::1", "eth0 10.0.2.15", "eth1 10.1.0.1"});
  CHECK(Offered(here, "", "203.0.113.7") ==
        Names{"eth0 10.0.2.15", "eth1 10.1.0.1", "eth1 fd00::1"});
  CHECK(Offered(here, "", "127.0.0.1") == Offered(here, ""));
  CHECK(Offered(here, "eth0,eth1", "fd00::1")[0] == "eth0 10.0.2.15");
}

TEST_CASE("TCP is offered at loopback only where there is nothing else, and nowhere without it") {
  CHECK(Offered({{{"lo", true, false, {"127.0.0.1"}}}, {}}, "") == Names{"lo 127.0.0.1"});
  CHECK(Offered({{{"tun0", false, true, {}}, {"lo", true, false, {"127.0.0.1"}}}, {}}, "") ==
        Names{"lo 127.0.0.1"});
  CHECK(Offered({}, "")[0].find("no interface of this host has an address") == 0);
}

TEST_CASE("a host with very many addresses offers as many as travel well") {
  NetDevices here;
  for (int i = 0; i < 100; ++i) {
    here.interfaces.push_back({"v" + std::to_string(i), false, false, {"10.9.8.7"}});
  }
  CHECK(Offered(here, "").size() == 32);
}

TEST_CASE(
    "TCP goes over the chosen interfaces that this host has, or over those of the user's word") {
  const NetDevices here = {{{"lo", true, false, {"127.0.0.1", "::1"}},
                            {"eth0", false, true, {"10.0.0.1"}},
                            {"eth1", false, false, {"10.1.0.1"}},
                            {"tun0", false, false, {}}},
                           {"mlx5_0:1"}};
  const auto offered = [&](const std::string& chosen) { return Offered(here, chosen); };
  CHECK(offered("ens3, eth1") == Names{"eth1 10.1.0.1"});
  CHECK(offered("eth1,eth0") == Names{"eth1 10.1.0.1", "eth0 10.0.0.1"});
  CHECK(offered("all") == Names{"lo 127.0.0.1", "lo ::1", "eth0 10.0.0.1", "eth1 10.1.0.1"});
  CHECK(offered("^lo,eth0") == Names{"eth1 10.1.0.1"});
  CHECK(offered("nope0")[0].find("network devices nope0 (--network-interfaces") == 0);
  CHECK(offered("tun0")[0].find("no interface of tun0 has an address") == 0);
  CHECK(offered("mlx5_0:1")[0].find("no interface of mlx5_0:1 has an address") == 0);
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
}  // namespace hvd::rt
