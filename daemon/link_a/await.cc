// SPDX-License-Identifier: Apache-2.0
#include "daemon/link_a/await.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/descriptor.h"
#include "daemon/link_a/handshake.h"
#include "proto/adoption.h"
#include "proto/exit_code.h"

namespace hvd::daemon {
namespace {

// A caller that knows the secret needs a round trip or two.
constexpr auto kProofPatience = std::chrono::seconds(5);
constexpr size_t kMostAddresses = 6;  // what a launcher's store takes of a rank is short

std::string Numeric(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address->sa_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text,
              sizeof(text));
  } else {
    const in6_addr& six = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
    if (IN6_IS_ADDR_LINKLOCAL(&six)) return "";  // means nothing on another host
    inet_ntop(AF_INET6, &six, text, sizeof(text));
  }
  return text;
}

// Returns the addresses of all cards that are up, IPv4 first.
std::vector<std::string> OwnAddresses() {
  ifaddrs* all = nullptr;
  std::vector<std::string> four, six;
  if (getifaddrs(&all) != 0) return four;
  for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
    const bool up = (each->ifa_flags & IFF_UP) != 0 && (each->ifa_flags & IFF_LOOPBACK) == 0;
    if (!up || each->ifa_addr == nullptr) continue;
    const int family = each->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    std::string text = Numeric(each->ifa_addr);
    if (!text.empty()) (family == AF_INET ? four : six).push_back(std::move(text));
  }
  freeifaddrs(all);
  four.insert(four.end(), six.begin(), six.end());
  if (four.size() > kMostAddresses) four.resize(kMostAddresses);
  return four;
}

// Both families where the host has both. errno says why not.
Descriptor Listen(int* port) {
  Descriptor listener(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  const int zero = 0;
  if (listener.valid()) {
    setsockopt(listener.get(), IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
  }
  if (!listener.valid() ||
      bind(listener.get(), reinterpret_cast<sockaddr*>(&six), sizeof(six)) != 0) {
    sockaddr_in four{};
    four.sin_family = AF_INET;
    listener.Reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!listener.valid() ||
        bind(listener.get(), reinterpret_cast<sockaddr*>(&four), sizeof(four)) != 0) {
      return Descriptor();
    }
  }
  sockaddr_in6 bound{};
  socklen_t size = sizeof(bound);
  if (listen(listener.get(), 16) != 0 ||
      getsockname(listener.get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return Descriptor();
  }
  *port = ntohs(bound.sin6_port);  // it lies where IPv4 has it
  return listener;
}

// The descriptors of the caller become the command's stdin and stdout.
[[noreturn]] void Become(const std::string& command, const Descriptor& caller) {
  const int flags = fcntl(caller.get(), F_GETFL);
  fcntl(caller.get(), F_SETFL, flags & ~O_NONBLOCK);
  const int on = 1;
  setsockopt(caller.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(caller.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  dup2(caller.get(), STDIN_FILENO);
  dup2(caller.get(), STDOUT_FILENO);
  execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
  fprintf(stderr, "hvdd: cannot run /bin/sh: %s\n", strerrordesc_np(errno));
  _exit(kExitLauncher);
}

void Answer(const Descriptor& listener, const std::string& secret) {
  const Descriptor caller(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!caller.valid()) return;
  const auto command = ProveAndHear(caller.get(), secret, Clock::now() + kProofPatience);
  if (!command.ok()) return;  // a stranger; the next may be the one
  [[maybe_unused]] const ssize_t told = write(STDOUT_FILENO, "called\n", 7);
  Become(*command, caller);
}

int Complain(const char* what) {
  fprintf(stderr, "hvdd --await: %s: %s\n", what, strerrordesc_np(errno));
  return kExitLauncher;
}

}  // namespace

int AwaitCall(int patience_s) {
  const char* const given = getenv(kAwaitSecretVariable);
  std::string secret = given == nullptr ? "" : absl::HexStringToBytes(given);
  unsetenv(kAwaitSecretVariable);
  if (secret.size() < kLeastDialSecret) {
    fprintf(stderr, "hvdd --await: %s is not set; libhvd starts this\n", kAwaitSecretVariable);
    return kExitUsage;
  }
  signal(SIGPIPE, SIG_IGN);
  int port = 0;
  const Descriptor listener = Listen(&port);
  if (!listener.valid()) return Complain("cannot listen");
  // The rank is to have no child that its program could meet.
  const pid_t child = fork();
  if (child < 0) return Complain("cannot make a process");
  if (child > 0) {
    printf("%d %s\n", port, absl::StrJoin(OwnAddresses(), ",").c_str());
    return fflush(stdout) == 0 ? kExitOk : Complain("cannot tell the port");
  }
  const TimePoint until = Clock::now() + std::chrono::seconds(patience_s);
  while (Clock::now() < until) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    pollfd ready[] = {{listener.get(), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    poll(ready, 2, static_cast<int>(left.count()));
    if (ready[1].revents != 0) _exit(kExitOk);  // the rank has ended, or needs it no more
    if (ready[0].revents != 0) Answer(listener, secret);
  }
  _exit(kExitTimeout);
}

}  // namespace hvd::daemon
