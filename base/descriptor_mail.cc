// SPDX-License-Identifier: Apache-2.0
#include "base/descriptor_mail.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>

namespace hvd {
namespace {

ssize_t Retry(auto call) {
  ssize_t n;
  do n = call();
  while (n < 0 && errno == EINTR);
  return n;
}

}  // namespace

ssize_t SendMail(int socket, Mail mail, const std::vector<int>& fds, int flags) {
  iovec part{const_cast<void*>(mail.data), mail.size};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxMailedFds)];
  if (!fds.empty()) {
    if (fds.size() > kMaxMailedFds) {
      errno = EINVAL;
      return -1;
    }
    const size_t bytes = sizeof(int) * fds.size();
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(bytes);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(bytes);
    memcpy(CMSG_DATA(header), fds.data(), bytes);
  }
  return Retry([&] { return sendmsg(socket, &message, MSG_NOSIGNAL | flags); });
}

ssize_t ReceiveMail(int socket, void* buffer, size_t size, std::vector<Descriptor>* fds) {
  iovec part{buffer, size};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxMailedFds)];
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t n =
      Retry([&] { return recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT); });
  if (n < 0) return n;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(fd));
      fds->emplace_back(fd);
    }
  }
  return n;
}

}  // namespace hvd
