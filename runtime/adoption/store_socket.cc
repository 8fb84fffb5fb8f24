// SPDX-License-Identifier: Apache-2.0
#include "runtime/adoption/store_socket.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace hvd::rt {
namespace {

absl::Status SystemWords(int error) { return absl::UnavailableError(strerrordesc_np(error)); }

int MillisecondsUntil(TimePoint until) {
  constexpr int64_t kLongest = 60'000;  // whoever waits looks again
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, kLongest));
}

}  // namespace

absl::Status AwaitSocket(int socket, short events, TimePoint until) {
  while (true) {
    pollfd ready{socket, events, 0};
    const int count = poll(&ready, 1, MillisecondsUntil(until));
    if (count > 0) return absl::OkStatus();
    if (count < 0 && errno != EINTR) return SystemWords(errno);
    if (Clock::now() >= until) return absl::DeadlineExceededError("it says nothing");
  }
}

absl::Status SendUntil(int socket, absl::string_view bytes, TimePoint until) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return SystemWords(errno);
    if (absl::Status waited = AwaitSocket(socket, POLLOUT, until); !waited.ok()) return waited;
  }
  return absl::OkStatus();
}

absl::Status ReceiveUntil(int socket, size_t most, TimePoint until, std::string* came) {
  constexpr size_t kPiece = 4096;
  char buffer[kPiece];
  while (true) {
    const ssize_t got = recv(socket, buffer, std::min(most, kPiece), MSG_DONTWAIT);
    if (got > 0) {
      came->append(buffer, static_cast<size_t>(got));
      return absl::OkStatus();
    }
    if (got == 0) return absl::UnavailableError("it has hung up");
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return SystemWords(errno);
    if (absl::Status waited = AwaitSocket(socket, POLLIN, until); !waited.ok()) return waited;
  }
}

}  // namespace hvd::rt
