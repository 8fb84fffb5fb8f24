// SPDX-License-Identifier: Apache-2.0
#include "cli/front/world.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <pwd.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <memory>

#include "cli/front/bounded_file.h"

namespace hvd::cli {
namespace {

std::string HostName() {
  std::array<char, 256> name = {};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string FullHostName() {
  addrinfo hints = {};
  hints.ai_flags = AI_CANONNAME;
  addrinfo* found = nullptr;
  if (getaddrinfo(HostName().c_str(), nullptr, &hints, &found) != 0) return "";
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  return found->ai_canonname == nullptr ? "" : found->ai_canonname;
}

std::string AddressText(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text = {};
  if (address != nullptr && address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    inet_ntop(AF_INET, &v4->sin_addr, text.data(), text.size());
  } else if (address != nullptr && address->sa_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
    inet_ntop(AF_INET6, &v6->sin6_addr, text.data(), text.size());
  }
  return text.data();
}

std::vector<std::string> OwnAddresses() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(first, freeifaddrs);
  std::vector<std::string> addresses;
  for (const ifaddrs* at = first; at != nullptr; at = at->ifa_next) {
    const std::string text = AddressText(at->ifa_addr);
    if (!text.empty()) addresses.push_back(text);
  }
  return addresses;
}

std::vector<int> OwnCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

std::string UserName() {
  const passwd* entry = getpwuid(geteuid());
  return entry == nullptr ? "" : entry->pw_name;
}

std::string WorkingDirectory() {
  std::error_code error;
  return std::filesystem::current_path(error).string();
}

std::filesystem::path ProgramDirectory() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
}

std::string LibraryPath() {
  return (ProgramDirectory().parent_path() / "lib" / "libhvd.so.0").string();
}

PythonReport FindAndProbePython(const std::vector<std::string>& environment,
                                const std::string& package) {
  const std::string python = FindPython(environment);
  if (!python.empty()) {
    return ProbePython({python, package, std::filesystem::path(LibraryPath()).parent_path()});
  }
  PythonReport report;
  report.python.problem = "there is no python3 in PATH";
  return report;
}

}  // namespace

FrontWorld ThisMachine() {
  FrontWorld world;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    world.environment.emplace_back(*entry);
  }
  world.directory = WorkingDirectory();
  world.program_directory = ProgramDirectory().string();
  world.host_name = HostName();
  world.addresses = OwnAddresses();
  world.cores = OwnCores();
  world.full_host_name = FullHostName;
  world.user_name = UserName;
  world.find_cards = [] { return FindCards(); };
  world.read_file = ReadBoundedFile;
  world.file_exists = [](const std::string& path) { return access(path.c_str(), F_OK) == 0; };
  world.probe_library = [] { return ProbeLibrary(LibraryPath()); };
  world.probe_python = [environment = world.environment](const std::string& package) {
    return FindAndProbePython(environment, package);
  };
  return world;
}

}  // namespace hvd::cli
