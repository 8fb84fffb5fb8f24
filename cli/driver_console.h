// The driver's side of the console: a queue before its socket, so that a console that is stopped
// (Ctrl-Z) or slow delays nothing but output.
#pragma once

#include <deque>

#include "cli/frame.h"

namespace hvd {

class DriverConsole {
 public:
  explicit DriverConsole(Descriptor socket) : socket_(std::move(socket)) {}

  int fd() const { return socket_.get(); }
  void Put(Frame frame);
  // Sends what the socket takes now.
  void Flush();
  // Waits until everything is sent or the console is gone: it may be stopped for hours.
  void FlushAll();
  void Forget();  // drops what has not been sent
  void Close();

  bool empty() const { return queue_.empty(); }
  // Workers' output is not acknowledged while this holds.
  bool is_slow() const { return queued_bytes_ > (1 << 20); }

 private:
  Descriptor socket_;
  std::deque<Frame> queue_;
  size_t queued_bytes_ = 0;
};

}  // namespace hvd
