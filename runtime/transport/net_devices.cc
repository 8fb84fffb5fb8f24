// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/net_devices.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace hvd::rt {
namespace {

// Each costs a peer that does not get through by it a try, and every rank a listening socket.
constexpr size_t kMostOffered = 32;

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

// The lower, the likelier that other hosts are behind it.
int Unlikeliness(const NetInterface& one) {
  if (one.is_loopback) return 4;
  if (!one.has_carrier) return 3;
  if (IsVirtual(one.name)) return 2;
  return one.has_default_route ? 0 : 1;
}

std::vector<NetAddress> LikeliestFirst(std::vector<NetInterface> interfaces,
                                       const std::string& reached_at) {
  std::stable_sort(interfaces.begin(), interfaces.end(),
                   [](const NetInterface& a, const NetInterface& b) {
                     return Unlikeliness(a) < Unlikeliness(b);
                   });
  std::vector<NetAddress> addresses;
  for (const NetInterface& one : interfaces) {
    // Under the address of loopback each host finds itself.
    if (one.is_loopback && !addresses.empty()) break;
    for (const std::string& host : one.addresses) {
      const bool first = host == reached_at && !one.is_loopback;
      addresses.insert(first ? addresses.begin() : addresses.end(), {host, one.name});
    }
  }
  if (addresses.size() > kMostOffered) addresses.resize(kMostOffered);
  return addresses;
}

// Names in the user's order. "^eth0,eth1" is all but these, as UCX has it.
std::vector<NetAddress> ChosenAddresses(std::vector<std::string> names,
                                        absl::Span<const NetInterface> interfaces) {
  const bool all_but = absl::StartsWith(names[0], "^");
  if (all_but) names[0].erase(0, 1);
  const bool by_name = !all_but && names[0] != "all";
  const auto place = [&](const NetInterface& one) {
    return std::find(names.begin(), names.end(), one.name) - names.begin();
  };
  std::vector<NetInterface> wanted;
  for (const NetInterface& one : interfaces) {
    const bool named = place(one) < static_cast<ptrdiff_t>(names.size());
    if (by_name ? named : !(all_but && named)) wanted.push_back(one);
  }
  if (by_name) {
    std::stable_sort(
        wanted.begin(), wanted.end(),
        [&](const NetInterface& a, const NetInterface& b) { return place(a) < place(b); });
  }
  std::vector<NetAddress> addresses;
  for (const NetInterface& one : wanted) {
    for (const std::string& host : one.addresses) addresses.push_back({host, one.name});
  }
  return addresses;
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
      known->has_carrier = (at->ifa_flags & IFF_RUNNING) != 0;
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

absl::StatusOr<std::vector<NetAddress>> AddressesFor(const std::string& chosen,
                                                     const std::string& reached_at,
                                                     const NetDevices& has) {
  const std::vector<std::string> names = DeviceNames(chosen);
  std::vector<NetAddress> addresses;
  if (names.empty()) {
    addresses = LikeliestFirst(has.interfaces, reached_at);
  } else if (absl::Status known = CheckChosenDevices(names, has); !known.ok()) {
    return known;
  } else {
    addresses = ChosenAddresses(names, has.interfaces);
  }
  if (!addresses.empty()) return addresses;
  return absl::InvalidArgumentError(
      absl::StrCat("no interface of ", chosen.empty() ? "this host" : chosen,
                   " has an address to listen on; name others with --network-interfaces or "
                   "HVD_NET_DEVICES"));
}

std::string OwnHostName() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  std::string text = name;
  std::erase(text, ' ');
  return text;
}

}  // namespace hvd::rt
