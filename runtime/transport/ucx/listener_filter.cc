// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/ucx/listener_filter.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

namespace hvd::rt {
namespace {

constexpr uint32_t kAccept = 0xffffffff;
constexpr uint32_t kDrop = 0;
constexpr uint32_t kFlagsAt = 13;  // of the TCP header, with which a packet begins here
constexpr uint32_t kSyn = 0x02;
constexpr uint32_t kAck = 0x10;
constexpr uint32_t kIpHeader = static_cast<uint32_t>(SKF_NET_OFF);
constexpr uint32_t kV4Source = 12, kV6Source = 8;

sock_filter Say(uint16_t code, uint32_t value) { return {code, 0, 0, value}; }
sock_filter Return(uint32_t verdict) { return Say(BPF_RET | BPF_K, verdict); }
sock_filter Load(uint16_t width, uint32_t at) { return Say(BPF_LD | BPF_ABS | width, at); }
// Goes on after `skipped` instructions when it differs.
sock_filter UnlessSame(uint32_t value, uint8_t skipped) {
  return {BPF_JMP | BPF_JEQ | BPF_K, 0, skipped, value};
}

// Only a request to connect has SYN without ACK; all others leave here.
std::vector<sock_filter> Beginning() {
  return {Load(BPF_B, kFlagsAt),
          Say(BPF_ALU | BPF_AND | BPF_K, kSyn | kAck),
          {BPF_JMP | BPF_JEQ | BPF_K, 1, 0, kSyn},
          Return(kAccept)};
}

void AddHost(const std::string& host, std::vector<sock_filter>* v4, std::vector<sock_filter>* v6) {
  in_addr four;
  in6_addr six;
  if (inet_pton(AF_INET, host.c_str(), &four) == 1) {
    v4->push_back(UnlessSame(ntohl(four.s_addr), 1));
    v4->push_back(Return(kAccept));
  } else if (inet_pton(AF_INET6, host.c_str(), &six) == 1) {
    for (uint32_t word = 0; word < 4; ++word) {
      uint32_t value = 0;
      memcpy(&value, six.s6_addr + 4 * word, sizeof(value));
      v6->push_back(Load(BPF_W, kIpHeader + kV6Source + 4 * word));
      v6->push_back(UnlessSame(ntohl(value), static_cast<uint8_t>(2 * (3 - word) + 1)));
    }
    v6->push_back(Return(kAccept));
  }
}

}  // namespace

std::vector<sock_filter> FilterFor(const std::vector<std::string>& hosts) {
  std::vector<sock_filter> v4 = {Load(BPF_W, kIpHeader + kV4Source)}, v6;
  for (const std::string& host : hosts) AddHost(host, &v4, &v6);
  v4.push_back(Return(kDrop));
  v6.push_back(Return(kDrop));
  std::vector<sock_filter> program = Beginning();
  program.push_back(Load(BPF_B, kIpHeader));
  program.push_back(Say(BPF_ALU | BPF_RSH | BPF_K, 4));
  program.push_back({BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 4});
  program.push_back(Say(BPF_JMP | BPF_JA, static_cast<uint32_t>(v4.size())));
  program.insert(program.end(), v4.begin(), v4.end());
  program.insert(program.end(), v6.begin(), v6.end());
  if (program.size() > BPF_MAXINSNS) return {Return(kAccept)};
  return program;
}

std::vector<sock_filter> FilterForNobody() {
  std::vector<sock_filter> program = Beginning();
  program.push_back(Return(kDrop));
  return program;
}

absl::Status AttachFilter(int fd, std::vector<sock_filter> program) {
  const sock_fprog words = {static_cast<uint16_t>(program.size()), program.data()};
  if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &words, sizeof(words)) == 0) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(errno, "attaching a filter to UCX's listening socket");
}

std::vector<int> ListeningSockets() {
  std::vector<int> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", ignored)) {
    const std::string name = entry.path().filename().string();
    int fd = -1;
    std::from_chars(name.data(), name.data() + name.size(), fd);
    int listens = 0;
    int type = 0;
    socklen_t length = sizeof(int);
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0 || listens == 0) continue;
    if (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &type, &length) == 0 && type == IPPROTO_TCP) {
      found.push_back(fd);
    }
  }
  return found;
}

std::vector<int> NewListeners(const std::vector<int>& before, const std::string& worker_address) {
  std::vector<int> found;
  for (const int fd : ListeningSockets()) {
    if (std::find(before.begin(), before.end(), fd) != before.end()) continue;
    sockaddr_storage address = {};
    socklen_t length = sizeof(address);
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) continue;
    // At the same place in both kinds of address.
    const auto& port = reinterpret_cast<const sockaddr_in&>(address).sin_port;
    const std::string bytes(reinterpret_cast<const char*>(&port), sizeof(port));
    if (worker_address.find(bytes) != std::string::npos) found.push_back(fd);
  }
  return found;
}

}  // namespace hvd::rt
