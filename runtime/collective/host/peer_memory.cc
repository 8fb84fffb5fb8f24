// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/host/peer_memory.h"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace hvd::rt {
namespace {

// The system only reads there.
void* Remote(const void* at) { return const_cast<void*>(at); }

}  // namespace

MemoryOffer OfferMemory(const void* input, const void* output, const uint64_t* token) {
  return {getpid(), static_cast<const std::byte*>(input), static_cast<const std::byte*>(output),
          token, *token};
}

bool CanRead(const MemoryOffer& offer, size_t bytes) {
  uint64_t token = 0;
  std::byte ends[4];
  iovec here[] = {{&token, sizeof(token)}, {ends, sizeof(ends)}};
  iovec there[] = {{Remote(offer.token_at), sizeof(token)},
                   {Remote(offer.input), 1},
                   {Remote(offer.input + bytes - 1), 1},
                   {Remote(offer.output), 1},
                   {Remote(offer.output + bytes - 1), 1}};
  const ssize_t read = process_vm_readv(offer.pid, here, 2, there, 5, 0);
  return read == static_cast<ssize_t>(sizeof(token) + sizeof(ends)) && token == offer.token;
}

absl::Status ReadMemory(pid_t pid, const std::byte* from, std::byte* to, size_t bytes) {
  while (bytes > 0) {
    iovec here = {to, bytes};
    iovec there = {Remote(from), bytes};
    const ssize_t read = process_vm_readv(pid, &here, 1, &there, 1, 0);
    if (read < 0 && errno == EINTR) continue;
    if (read <= 0) {
      return absl::UnavailableError("reading the memory of process " + std::to_string(pid) +
                                    " failed: " + strerror(read < 0 ? errno : EFAULT));
    }
    from += read;
    to += read;
    bytes -= static_cast<size_t>(read);
  }
  return absl::OkStatus();
}

}  // namespace hvd::rt
