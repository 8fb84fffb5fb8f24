// SPDX-License-Identifier: Apache-2.0
#include "daemon/connections/store_peer.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

namespace hvd::daemon {

bool StorePeer::Read() {
  char buffer[64 << 10];
  const ssize_t n = recv(socket_.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  if (n > 0) cutter_.Take({buffer, static_cast<size_t>(n)});
  return n > 0;
}

bool StorePeer::given_up() const {
  pollfd asked = {socket_.get(), POLLRDHUP, 0};
  return poll(&asked, 1, 0) == 1;
}

bool StorePeer::Flush() {
  while (sent_ < out_.size()) {
    const ssize_t n =
        send(socket_.get(), out_.data() + sent_, out_.size() - sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN;
    sent_ += static_cast<size_t>(n);
  }
  out_.clear();
  out_.shrink_to_fit();
  sent_ = 0;
  return true;
}

}  // namespace hvd::daemon
