// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/net_devices.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace hvd {
namespace {

std::set<std::string> DefaultRoutes() {
  std::set<std::string> names;
  std::ifstream table("/proc/self/net/route");
  std::string line;
  std::getline(table, line);  // headings
  while (std::getline(table, line)) {
    std::istringstream words(line);
    std::string name;
    std::string destination;
    if (words >> name >> destination && destination == "00000000") names.insert(name);
  }
  return names;
}

void AddAddress(const sockaddr& address, std::vector<std::string>* texts) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.sa_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text, sizeof(text));
    const auto is_v6 = [](const std::string& one) { return absl::StrContains(one, ':'); };
    texts->insert(std::find_if(texts->begin(), texts->end(), is_v6), text);
    return;
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  if (IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr)) return;  // would need a name of the peer's interface
  inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
  texts->push_back(text);
}

// Bridges and links of containers and virtual machines: other hosts are not behind them.
bool IsVirtual(const std::string& name) {
  for (const char* prefix : {"docker", "br-", "virbr", "veth", "vnet", "cni", "flannel", "cali",
                             "lxc", "lxdbr", "podman", "tap"}) {
    if (absl::StartsWith(name, prefix)) return true;
  }
  return false;
}

template <class Wanted>
std::vector<std::string> Names(absl::Span<const NetInterface> interfaces, const Wanted& wanted) {
  std::vector<std::string> names;
  for (const NetInterface& one : interfaces) {
    if (wanted(one)) names.push_back(one.name);
  }
  return names;
}

}  // namespace

std::vector<NetInterface> ListNetInterfaces() {
  const std::set<std::string> routes = DefaultRoutes();
  std::vector<NetInterface> found;
  ifaddrs* addresses = nullptr;
  if (getifaddrs(&addresses) != 0) return found;
  for (const ifaddrs* at = addresses; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || (at->ifa_flags & IFF_UP) == 0) continue;
    const int family = at->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    auto known = std::find_if(found.begin(), found.end(),
                              [&](const NetInterface& one) { return one.name == at->ifa_name; });
    if (known == found.end()) {
      found.push_back(
          {at->ifa_name, (at->ifa_flags & IFF_LOOPBACK) != 0, routes.count(at->ifa_name) != 0});
      known = found.end() - 1;
    }
    AddAddress(*at->ifa_addr, &known->addresses);
  }
  freeifaddrs(addresses);
  return found;
}

std::vector<std::string> ListRdmaPorts(const std::string& sys_folder) {
  std::vector<std::string> ports;
  std::error_code ignored;
  for (const auto& device : std::filesystem::directory_iterator(sys_folder, ignored)) {
    for (const auto& port : std::filesystem::directory_iterator(device.path() / "ports", ignored)) {
      std::ifstream state(port.path() / "state");  // "4: ACTIVE"
      int number = 0;
      if (state >> number && number == 4) {
        ports.push_back(device.path().filename().string() + ":" + port.path().filename().string());
      }
    }
  }
  std::sort(ports.begin(), ports.end());
  return ports;
}

std::vector<std::string> ChooseInterfaces(absl::Span<const NetInterface> interfaces) {
  const auto is_real = [](const NetInterface& one) {
    return !one.is_loopback && !IsVirtual(one.name);
  };
  std::vector<std::string> names = Names(
      interfaces, [&](const NetInterface& one) { return is_real(one) && one.has_default_route; });
  if (names.empty()) names = Names(interfaces, is_real);
  if (names.empty()) {
    names = Names(interfaces, [](const NetInterface& one) { return !one.is_loopback; });
  }
  if (names.empty()) names = Names(interfaces, [](const NetInterface&) { return true; });
  return names;
}

std::vector<std::string> DeviceNames(const std::string& list) {
  return absl::StrSplit(list, absl::ByAnyChar(", "), absl::SkipEmpty());
}

absl::Status CheckChosenDevices(const std::vector<std::string>& chosen, const NetDevices& has) {
  std::vector<std::string> here = Names(has.interfaces, [](const NetInterface&) { return true; });
  here.insert(here.end(), has.rdma_ports.begin(), has.rdma_ports.end());
  for (const std::string& one : chosen) {
    const bool is_pattern = one == "all" || one[0] == '^';
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

absl::StatusOr<std::vector<NetInterface>> InterfacesFor(const std::string& chosen,
                                                        const NetDevices& has) {
  std::vector<std::string> names = DeviceNames(chosen);
  if (names.empty()) names = ChooseInterfaces(has.interfaces);
  if (absl::Status known = CheckChosenDevices(names, has); !known.ok()) return known;
  // "^eth0,eth1" is all but these, as UCX has it.
  const bool all_but = absl::StartsWith(names[0], "^");
  if (all_but) names[0].erase(0, 1);
  std::vector<NetInterface> wanted;
  for (const NetInterface& one : has.interfaces) {
    const bool named =
        names[0] == "all" || std::find(names.begin(), names.end(), one.name) != names.end();
    if (named != all_but && !one.addresses.empty()) wanted.push_back(one);
  }
  if (!wanted.empty()) return wanted;
  return absl::InvalidArgumentError(
      absl::StrCat("no interface of ", chosen.empty() ? "this host" : chosen,
                   " has an address to listen on; name others with --network-interfaces or "
                   "HVD_NET_DEVICES"));
}

}  // namespace hvd
