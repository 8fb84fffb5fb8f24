// SPDX-License-Identifier: Apache-2.0
#include "daemon/link_a/dial.h"

#include <fcntl.h>
#include <netdb.h>
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
#include <optional>
#include <thread>

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

constexpr auto kConnectPatience = std::chrono::seconds(3);  // an address
constexpr auto kProofPatience = std::chrono::seconds(10);
constexpr size_t kPumpBytes = size_t{64} * 1024;
constexpr int kFailed = 255;  // as ssh says it

// Connected, or why not.
absl::StatusOr<Descriptor> Connect(const std::string& address, int port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    return absl::InvalidArgumentError("is no address");
  }
  Descriptor socket(
      ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  const int begun = socket.valid() ? connect(socket.get(), found->ai_addr, found->ai_addrlen) : -1;
  int error = begun == 0 ? 0 : errno;
  freeaddrinfo(found);
  if (error == EINPROGRESS) {
    pollfd ready{socket.get(), POLLOUT, 0};
    const auto patience = std::chrono::milliseconds(kConnectPatience).count();
    if (poll(&ready, 1, static_cast<int>(patience)) != 1) {
      return absl::DeadlineExceededError("does not answer");
    }
    socklen_t size = sizeof(error);
    getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  }
  if (error != 0) return absl::UnavailableError(strerrordesc_np(error));
  return socket;
}

// The first address at which somebody knows the secret: others may have the same one elsewhere.
Descriptor Reach(const AdoptedHost& host, const std::string& command) {
  std::string why;
  for (const std::string& address : host.addresses) {
    absl::StatusOr<Descriptor> socket = Connect(address, host.port);
    absl::Status done = socket.status();
    if (done.ok()) {
      done = ProveAndAsk(socket->get(), absl::HexStringToBytes(host.secret), command,
                         Clock::now() + kProofPatience);
    }
    if (done.ok()) return *std::move(socket);
    absl::StrAppend(&why, why.empty() ? "" : "; ", address, " ", done.message());
  }
  fprintf(stderr, "hvdd: cannot reach the rank on %s at port %d: %s\n", host.name.c_str(),
          host.port, why.empty() ? "it has told no address" : why.c_str());
  return Descriptor();
}

// Until `from` ends or `to` takes nothing more.
void Pump(int from, int to) {
  std::string bytes(kPumpBytes, '\0');
  while (true) {
    const ssize_t got = read(from, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    for (ssize_t at = 0; at < got;) {
      const ssize_t done = write(to, bytes.data() + at, got - at);
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) return;
      at += done;
    }
  }
}

std::optional<AdoptedHost> Find(const std::string& name) {
  const char* const text = getenv(kAdoptionVariable);
  const auto adoption = ParseAdoption(text == nullptr ? "" : text);
  if (!adoption.has_value()) return std::nullopt;
  for (const AdoptedHost& host : adoption->hosts) {
    if (host.name == name && host.port != 0) return host;
  }
  return std::nullopt;
}

}  // namespace

int Dial(const std::string& name, const std::string& command) {
  signal(SIGPIPE, SIG_IGN);
  const std::optional<AdoptedHost> host = Find(name);
  if (!host.has_value()) {
    fprintf(stderr, "hvdd --dial: %s names no such host; hvdrun starts this\n", kAdoptionVariable);
    return kExitUsage;
  }
  const Descriptor socket = Reach(*host, command);
  if (!socket.valid()) return kFailed;
  fcntl(socket.get(), F_SETFL, fcntl(socket.get(), F_GETFL) & ~O_NONBLOCK);
  const int on = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  std::thread([&socket] {
    Pump(STDIN_FILENO, socket.get());
    shutdown(socket.get(), SHUT_WR);
  }).detach();
  Pump(socket.get(), STDOUT_FILENO);
  _exit(kExitOk);  // the other thread waits for what does not come
}

}  // namespace hvd::daemon
