// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/link_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace hvd::rt {
namespace {

constexpr size_t kMaxFrame = 256u << 20;  // a table of 65,536 addresses fits
constexpr size_t kMaxDescriptors = 253;   // the kernel's SCM_MAX_FD
constexpr int kLookAroundMs = 50;

absl::Status ErrnoStatus(const char* what) {
  return absl::UnavailableError(std::string("link to hvdd: ") + what + ": " + strerror(errno));
}

// True if `fd` is still the door that hvdd opened: a wrapper may have closed it and reused its
// number.
bool IsDoor(const LinkName& link) {
  struct stat info {};
  return link.fd >= 0 && fstat(link.fd, &info) == 0 && S_ISSOCK(info.st_mode) &&
         info.st_ino == link.inode;
}

// sendmsg with a descriptor; its result, errno kept.
ssize_t SendWithDescriptor(int socket, std::string_view bytes, int descriptor) {
  struct iovec payload = {const_cast<char*>(bytes.data()), bytes.size()};
  alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  struct msghdr message {};
  message.msg_iov = &payload;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  struct cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
  return sendmsg(socket, &message, MSG_NOSIGNAL);
}

// Sends one end of a fresh socket pair through the door and keeps the other: so that several
// processes may share one inherited door without their bytes ever mixing.
absl::StatusOr<int> EnterByDoor(const LinkName& link) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return ErrnoStatus("socketpair");
  const ssize_t sent = SendWithDescriptor(link.fd, link.token, pair[1]);
  const int saved = errno;
  close(pair[1]);
  if (sent >= 0) return pair[0];
  close(pair[0]);
  errno = saved;
  return ErrnoStatus("the inherited descriptor");
}

absl::StatusOr<int> EnterByPath(const LinkName& link) {
  struct sockaddr_un address {};
  address.sun_family = AF_UNIX;
  if (link.path.empty() || link.path.size() >= sizeof(address.sun_path)) {
    return absl::UnavailableError("link to hvdd: HVD_LINK names no usable socket");
  }
  std::memcpy(address.sun_path, link.path.data(), link.path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return ErrnoStatus("socket");
  if (connect(fd, reinterpret_cast<struct sockaddr*>(&address), sizeof(address)) == 0) return fd;
  const int saved = errno;
  close(fd);
  errno = saved;
  return ErrnoStatus("connecting back (is the job still running?)");
}

}  // namespace

absl::StatusOr<int> LinkSocket::Connect(const LinkName& link) {
  if (IsDoor(link)) {
    const absl::StatusOr<int> fd = EnterByDoor(link);
    if (fd.ok()) return fd;
  }
  return EnterByPath(link);
}

LinkSocket::~LinkSocket() {
  for (const int fd : descriptors_) close(fd);
  close(fd_);
}

absl::Status LinkSocket::Send(const std::string& bytes, int descriptor) {
  const auto length = static_cast<uint32_t>(bytes.size());
  std::string frame(reinterpret_cast<const char*>(&length), sizeof(length));
  frame += bytes;
  size_t at = 0;
  while (at < frame.size()) {
    const std::string_view rest = std::string_view(frame).substr(at);
    const ssize_t sent = descriptor >= 0 ? SendWithDescriptor(fd_, rest, descriptor)
                                         : send(fd_, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return ErrnoStatus("sending");
    descriptor = -1;  // it went with the first byte
    at += static_cast<size_t>(sent);
  }
  return absl::OkStatus();
}

void LinkSocket::HangUp() { shutdown(fd_, SHUT_RDWR); }

bool LinkSocket::AwaitReadable(int milliseconds) const {
  struct pollfd waiting = {fd_, POLLIN, 0};
  return poll(&waiting, 1, milliseconds) > 0;
}

absl::Status LinkSocket::Fill(size_t bytes, absl::FunctionRef<absl::Status()> broken) {
  while (buffer_.size() < bytes) {
    struct pollfd waiting = {fd_, POLLIN, 0};
    const int ready = poll(&waiting, 1, kLookAroundMs);
    if (ready < 0 && errno != EINTR) return ErrnoStatus("poll");
    if (ready <= 0) {
      if (absl::Status status = broken(); !status.ok()) return status;
      continue;
    }
    char part[16384];
    struct iovec payload = {part, std::min(sizeof(part), bytes - buffer_.size())};
    alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxDescriptors)];
    struct msghdr message {};
    message.msg_iov = &payload;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const ssize_t got = recvmsg(fd_, &message, MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno != ECONNRESET) return ErrnoStatus("receiving");
    if (got <= 0) {
      if (absl::Status status = broken(); !status.ok()) return status;
      return absl::UnavailableError("link to hvdd: the daemon of this host is gone");
    }
    buffer_.append(part, static_cast<size_t>(got));
    for (struct cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
      if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
      const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      const size_t before = descriptors_.size();
      descriptors_.resize(before + count);
      std::memcpy(descriptors_.data() + before, CMSG_DATA(c), count * sizeof(int));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<LinkFrame> LinkSocket::Receive(absl::FunctionRef<absl::Status()> broken) {
  uint32_t length = 0;
  if (absl::Status status = Fill(sizeof(length), broken); !status.ok()) return status;
  std::memcpy(&length, buffer_.data(), sizeof(length));
  if (length > kMaxFrame) return absl::InternalError("link to hvdd: a frame is too long");
  if (absl::Status status = Fill(sizeof(length) + length, broken); !status.ok()) return status;
  LinkFrame frame;
  frame.bytes = buffer_.substr(sizeof(length));
  frame.descriptors = std::move(descriptors_);
  buffer_.clear();
  descriptors_.clear();
  return frame;
}

}  // namespace hvd::rt
