// SPDX-License-Identifier: Apache-2.0
// The socket to the daemon: frames with descriptors, and waits that an abort can end.
#pragma once

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "proto/hello.h"

namespace hvd::rt {

// A received frame; the descriptors are the receiver's.
struct LinkFrame {
  std::string bytes;
  std::vector<int> descriptors;
};

// Threads: one caller at a time. Owns the socket.
class LinkSocket {
 public:
  explicit LinkSocket(int fd) : fd_(fd) {}
  ~LinkSocket();
  LinkSocket(const LinkSocket&) = delete;
  LinkSocket& operator=(const LinkSocket&) = delete;

  // By the inherited door, or by the path back when a wrapper closed it.
  static absl::StatusOr<int> Connect(const LinkName& link);

  // False: nothing came within `milliseconds` (-1: any time), or a signal did. The link's end is
  // something to read.
  bool AwaitReadable(int milliseconds) const;
  // Ends the link, also where the child of a fork still has its descriptor.
  void HangUp();
  // `descriptor` goes with the frame unless it is -1; it stays the caller's.
  absl::Status Send(const std::string& bytes, int descriptor = -1);
  // Waits for a frame. `broken` is asked every 50 ms: it returns the reason to give up, or OK. End
  // of file means that the daemon is gone: Unavailable.
  absl::StatusOr<LinkFrame> Receive(absl::FunctionRef<absl::Status()> broken);

 private:
  absl::Status Fill(size_t bytes, absl::FunctionRef<absl::Status()> broken);

  const int fd_;
  std::string buffer_;
  std::vector<int> descriptors_;  // came with what is in buffer_
};

}  // namespace hvd::rt
