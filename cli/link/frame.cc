// SPDX-License-Identifier: Apache-2.0
#include "cli/link/frame.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>

namespace hvd::cli {
namespace {

constexpr size_t kMaxDescriptors = 4;

struct Header {
  uint32_t kind;
  uint32_t index;
  uint64_t number;
  uint8_t is_stderr;
  uint8_t end;
  uint8_t unused[6];
};

void TakeDescriptors(msghdr* message, Frame* frame) {
  for (cmsghdr* part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      frame->fds.emplace_back(fd);
    }
  }
}

}  // namespace

bool MakeFramePair(Descriptor* one, Descriptor* other) {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0) return false;
  one->Reset(fds[0]);
  other->Reset(fds[1]);
  return true;
}

FrameResult SendFrame(int fd, const Frame& frame) {
  Header header = {};
  header.kind = static_cast<uint32_t>(frame.kind);
  header.index = frame.index;
  header.number = frame.number;
  header.is_stderr = frame.is_stderr;
  header.end = frame.end;
  iovec parts[2] = {{&header, sizeof header},
                    {const_cast<char*>(frame.text.data()), frame.text.size()}};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  if (!frame.fds.empty()) {
    const size_t bytes = frame.fds.size() * sizeof(int);
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(bytes);
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(bytes);
    for (size_t i = 0; i < frame.fds.size(); ++i) {
      const int passed = frame.fds[i].get();
      memcpy(CMSG_DATA(part) + i * sizeof(int), &passed, sizeof(int));
    }
  }
  for (;;) {
    if (sendmsg(fd, &message, MSG_NOSIGNAL) >= 0) return FrameResult::kDone;
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == ENOBUFS) return FrameResult::kWouldBlock;
    return FrameResult::kGone;
  }
}

FrameResult ReceiveFrame(int fd, Frame* frame) {
  Header header = {};
  std::array<char, kMaxFrameText> text;
  iovec parts[2] = {{&header, sizeof header}, {text.data(), text.size()}};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got;
  // The end of a peer that has not read all of ours comes as an error, once and before what it sent
  // last.
  do {
    got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && (errno == EINTR || errno == ECONNRESET));
  if (got < 0 && errno == EAGAIN) return FrameResult::kWouldBlock;
  if (got < static_cast<ssize_t>(sizeof header)) return FrameResult::kGone;
  *frame = Frame();
  TakeDescriptors(&message, frame);
  frame->kind = static_cast<FrameKind>(header.kind);
  frame->index = header.index;
  frame->number = header.number;
  frame->is_stderr = header.is_stderr != 0;
  frame->end = header.end != 0;
  frame->text.assign(text.data(), got - sizeof header);
  return FrameResult::kDone;
}

}  // namespace hvd::cli
