// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace hvd::rt {
namespace {

absl::StatusOr<Socket> OpenSocket(int family) {
  Socket socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  if (!socket.open()) return SocketError(errno, "opening a socket");
  return socket;
}

}  // namespace

void Socket::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

std::string SocketAddress::Host() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (storage.ss_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(storage).sin_addr, text, sizeof(text));
  } else if (storage.ss_family == AF_INET6) {
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr, text,
              sizeof(text));
  }
  return text;
}

uint16_t SocketAddress::Port() const {
  return ntohs(storage.ss_family == AF_INET
                   ? reinterpret_cast<const sockaddr_in&>(storage).sin_port
                   : reinterpret_cast<const sockaddr_in6&>(storage).sin6_port);
}

std::string SocketAddress::Text() const {
  const std::string host = Host();
  return storage.ss_family == AF_INET6 ? absl::StrCat("[", host, "]:", Port())
                                       : absl::StrCat(host, ":", Port());
}

absl::StatusOr<SocketAddress> MakeSocketAddress(const std::string& host, uint16_t port) {
  SocketAddress address;
  auto& v4 = reinterpret_cast<sockaddr_in&>(address.storage);
  if (inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    address.length = sizeof(v4);
    return address;
  }
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address.storage);
  if (inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    address.length = sizeof(v6);
    return address;
  }
  return absl::InvalidArgumentError(absl::StrCat("'", host, "' is no address in figures"));
}

absl::StatusOr<Socket> ListenAt(SocketAddress* address, int backlog) {
  absl::StatusOr<Socket> socket = OpenSocket(address->storage.ss_family);
  if (!socket.ok()) return socket.status();
  const int one = 1;
  if (address->storage.ss_family == AF_INET6) {
    setsockopt(socket->fd(), IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
  }
  const std::string doing = "listening at " + address->Host();
  if (bind(socket->fd(), address->get(), address->length) != 0 ||
      listen(socket->fd(), backlog) != 0 ||
      getsockname(socket->fd(), address->get(), &address->length) != 0) {
    return SocketError(errno, doing.c_str());
  }
  return socket;
}

absl::StatusOr<Socket> BeginConnect(const SocketAddress& to) {
  absl::StatusOr<Socket> socket = OpenSocket(to.storage.ss_family);
  if (!socket.ok()) return socket.status();
  if (connect(socket->fd(), to.get(), to.length) != 0 && errno != EINPROGRESS) {
    return SocketError(errno, "connecting");
  }
  return socket;
}

absl::Status ConnectResult(const Socket& socket) {
  int error = 0;
  socklen_t length = sizeof(error);
  if (getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
  return error == 0 ? absl::OkStatus() : SocketError(error, "connecting");
}

std::string LocalHost(const Socket& socket) {
  SocketAddress local;
  local.length = sizeof(local.storage);
  if (getsockname(socket.fd(), local.get(), &local.length) != 0) return "";
  return local.Host();
}

void SendSmallOnesAtOnce(const Socket& socket) {
  const int one = 1;
  setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

absl::StatusOr<size_t> ReceiveSome(const Socket& socket, void* data, size_t bytes) {
  const ssize_t n = recv(socket.fd(), data, bytes, MSG_DONTWAIT);
  if (n > 0) return static_cast<size_t>(n);
  if (n == 0 && bytes > 0) return absl::UnavailableError("the other end closed the connection");
  if (n == 0 || errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return size_t{0};
  return SocketError(errno, "receiving");
}

absl::StatusOr<size_t> SendSome(const Socket& socket, const void* data, size_t bytes) {
  const ssize_t n = send(socket.fd(), data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n >= 0) return static_cast<size_t>(n);
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return size_t{0};
  return SocketError(errno, "sending");
}

absl::Status SocketError(int error, const char* doing) {
  return absl::UnavailableError(absl::StrCat(doing, ": ", strerror(error)));
}

}  // namespace hvd::rt
