// SPDX-License-Identifier: Apache-2.0
// The driver's side of the console: two queues before its socket, so that a console that is stopped
// (Ctrl-Z) or has a slow reader delays nothing but output.
#pragma once

#include <cstdint>
#include <deque>

#include "cli/link/frame.h"

namespace hvd::cli {

class DriverConsole {
 public:
  explicit DriverConsole(Descriptor socket) : socket_(std::move(socket)) {}

  int fd() const { return socket_.get(); }
  // Goes before any output that waits.
  void Put(Frame frame);
  // Output, and what is to come after it. Output goes as far as the console says that it takes it.
  void PutInOrder(Frame frame);
  // The console has taken so many bytes of output, in total, and has room for more.
  void Taken(uint64_t bytes) { taken_ = bytes; }
  // Sends what the socket takes now.
  void Flush();
  void ForgetOutput();  // drops what has not been sent of it
  void Close();

  // Something waits that could be sent if the socket had room.
  bool wants_room() const { return !urgent_.empty() || MaySendInOrder(); }
  bool empty() const { return urgent_.empty() && in_order_.empty(); }
  // Workers' output is not acknowledged while this holds.
  bool is_slow() const { return queued_bytes_ > (1 << 20); }

 private:
  bool MaySendInOrder() const;
  bool SendFirst(std::deque<Frame>* queue);

  Descriptor socket_;
  std::deque<Frame> urgent_;
  std::deque<Frame> in_order_;
  size_t queued_bytes_ = 0;  // of output in in_order_
  uint64_t sent_ = 0;        // bytes of output
  uint64_t taken_ = 0;
};

}  // namespace hvd::cli
