#include "runtime/transport/ucx/net_devices.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "absl/strings/match.h"

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
    const bool known = std::any_of(found.begin(), found.end(), [&](const NetInterface& one) {
      return one.name == at->ifa_name;
    });
    if (known) continue;
    found.push_back(
        {at->ifa_name, (at->ifa_flags & IFF_LOOPBACK) != 0, routes.count(at->ifa_name) != 0});
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

}  // namespace hvd
