// SPDX-License-Identifier: Apache-2.0
// Sockets and their addresses. All are non-blocking and close on exec; none ever raises SIGPIPE.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace hvd::rt {

// Owns a descriptor.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    if (this != &other) {
      Close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Socket() { Close(); }

  int fd() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  void Close();

 private:
  int fd_ = -1;
};

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t length = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  std::string Host() const;  // "10.0.0.1"
  uint16_t Port() const;
  std::string Text() const;  // "10.0.0.1:4711", "[fd00::1]:4711"
};

// InvalidArgument when `host` is no IPv4 or IPv6 address in figures.
absl::StatusOr<SocketAddress> MakeSocketAddress(const std::string& host, uint16_t port);

// Listens at an address; port 0: one that the system chooses. `address` becomes the real one.
absl::StatusOr<Socket> ListenAt(SocketAddress* address, int backlog);
// Begins to connect.
absl::StatusOr<Socket> BeginConnect(const SocketAddress& to);
// How it went, once the socket can be written to.
absl::Status ConnectResult(const Socket& socket);
// Which address of this host a socket has, in figures, once it connects; empty: none.
std::string LocalHost(const Socket& socket);
// Sets what every connection of the transport has: segments go out at once.
void SendSmallOnesAtOnce(const Socket& socket);

// Bytes moved; 0: none at the moment. An error: the connection is over, also by its peer's close.
absl::StatusOr<size_t> ReceiveSome(const Socket& socket, void* data, size_t bytes);
absl::StatusOr<size_t> SendSome(const Socket& socket, const void* data, size_t bytes);
absl::Status SocketError(int error, const char* doing);

}  // namespace hvd::rt
