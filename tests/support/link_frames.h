// SPDX-License-Identifier: Apache-2.0
// Link B's frames as a daemon of a test reads and writes them.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "hvd/v1/link_b.pb.h"

namespace hvd {

// The descriptor that comes with the bytes, if any, goes to *descriptor, which is the caller's.
inline bool ReadAll(int fd, void* data, size_t bytes, int* descriptor) {
  struct iovec payload = {data, bytes};
  alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  struct msghdr message {};
  message.msg_iov = &payload;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t got = recvmsg(fd, &message, MSG_WAITALL | MSG_CMSG_CLOEXEC);
  struct cmsghdr* c = got > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (c != nullptr) std::memcpy(descriptor, CMSG_DATA(c), sizeof(int));
  if (got <= 0 || got == static_cast<ssize_t>(bytes)) return got > 0 || bytes == 0;
  // The kernel ends a read behind a descriptor.
  return ReadAll(fd, static_cast<char*>(data) + got, bytes - got, descriptor);
}

// As above: the descriptor is the caller's.
inline bool ReadFrame(int fd, v1::ToDaemon* message, int* descriptor) {
  uint32_t length = 0;
  if (!ReadAll(fd, &length, sizeof(length), descriptor)) return false;
  std::string bytes(length, 0);
  return ReadAll(fd, bytes.data(), length, descriptor) && message->ParseFromString(bytes);
}

inline bool ReadFrame(int fd, v1::ToDaemon* message) {
  int unwanted = -1;
  const bool fine = ReadFrame(fd, message, &unwanted);
  if (unwanted >= 0) close(unwanted);
  return fine;
}

inline void WriteFrame(int fd, const v1::ToWorker& message, const std::vector<int>& fds = {}) {
  const std::string bytes = message.SerializeAsString();
  const auto length = static_cast<uint32_t>(bytes.size());
  std::string frame(reinterpret_cast<const char*>(&length), sizeof(length));
  frame += bytes;
  struct iovec payload = {frame.data(), frame.size()};
  struct msghdr header {};
  header.msg_iov = &payload;
  header.msg_iovlen = 1;
  std::vector<char> control(CMSG_SPACE(sizeof(int) * fds.size()));
  if (!fds.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    struct cmsghdr* c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
    std::memcpy(CMSG_DATA(c), fds.data(), sizeof(int) * fds.size());
  }
  [[maybe_unused]] const ssize_t sent = sendmsg(fd, &header, MSG_NOSIGNAL);
}

}  // namespace hvd
