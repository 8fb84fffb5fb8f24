// SPDX-License-Identifier: Apache-2.0
#include "daemon/connections/link_peer.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cerrno>
#include <utility>

#include "base/descriptor_mail.h"

namespace hvd::daemon {
namespace {

constexpr size_t kMostDescriptors = 1;  // an Address brings one arena
constexpr size_t kMostWaiting = 64;     // messages; a worker asks, and waits for its answer

}  // namespace

LinkPeer::LinkPeer(Descriptor socket) : socket_(std::move(socket)) {
  fcntl(socket_.get(), F_SETFL, O_NONBLOCK);
  ucred who{};
  socklen_t size = sizeof(who);
  if (getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) return;
  pid_ = who.pid;
  if (pid_ > 0) pidfd_.Reset(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  trusted_ = who.uid == geteuid() && pidfd_.valid();
}

bool LinkPeer::Ended(int milliseconds) const {
  pollfd ended{pidfd_.get(), POLLIN, 0};
  return !pidfd_.valid() || poll(&ended, 1, milliseconds) == 1;
}

bool LinkPeer::Read() {
  // One piece a call: a flood is cut into frames as it comes, not gathered.
  char buffer[64 << 10];
  const ssize_t n = ReceiveMail(socket_.get(), buffer, sizeof(buffer), &came_);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  laden_ = came_.size() > kMostDescriptors;
  if (n == 0 || laden_) return false;
  cutter_.Take({buffer, static_cast<size_t>(n)});
  return true;
}

void LinkPeer::Send(std::string_view message, std::vector<int> fds,
                    std::shared_ptr<const void> keep) {
  out_.push_back({Frame(message), std::move(fds), std::move(keep)});
}

bool LinkPeer::deaf() const { return out_.size() > kMostWaiting; }

bool LinkPeer::Flush() {
  crowded_ = false;
  while (!out_.empty()) {
    Waiting& next = out_.front();
    const ssize_t n =
        SendMail(socket_.get(), {next.bytes.data(), next.bytes.size()}, next.fds, MSG_DONTWAIT);
    if (n < 0) {
      crowded_ = errno == ETOOMANYREFS;
      return crowded_ || errno == EAGAIN;
    }
    next.fds.clear();  // they went with the first byte
    next.bytes.erase(0, n);
    if (next.bytes.empty()) out_.pop_front();
  }
  return true;
}

}  // namespace hvd::daemon
