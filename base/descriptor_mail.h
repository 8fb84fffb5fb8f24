// SPDX-License-Identifier: Apache-2.0
// Bytes with descriptors over a unix socket.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <vector>

#include "base/descriptor.h"

namespace hvd {

inline constexpr size_t kMaxMailedFds = 160;

struct Mail {
  const void* data;
  size_t size;
};

// sendmsg with MSG_NOSIGNAL and `flags`; its result, errno kept.
ssize_t SendMail(int socket, Mail mail, const std::vector<int>& fds, int flags);

// recvmsg into `buffer`; descriptors arrive close-on-exec in `fds`. Its result, errno kept.
ssize_t ReceiveMail(int socket, void* buffer, size_t size, std::vector<Descriptor>* fds);

}  // namespace hvd
