#include "cli/driver_console.h"

#include <poll.h>

namespace hvd {

void DriverConsole::Put(Frame frame) {
  if (!socket_) return;
  queued_bytes_ += frame.text.size();
  queue_.push_back(std::move(frame));
}

void DriverConsole::Flush() {
  while (!queue_.empty()) {
    const FrameResult result = SendFrame(socket_.get(), queue_.front());
    if (result == FrameResult::kWouldBlock) return;
    if (result == FrameResult::kGone) return Forget();
    queued_bytes_ -= queue_.front().text.size();
    queue_.pop_front();
  }
}

void DriverConsole::FlushAll() {
  for (Flush(); !queue_.empty(); Flush()) {
    pollfd wait = {socket_.get(), POLLOUT, 0};
    poll(&wait, 1, -1);
  }
}

void DriverConsole::Forget() {
  queue_.clear();
  queued_bytes_ = 0;
}

void DriverConsole::Close() {
  Forget();
  socket_.Reset();
}

}  // namespace hvd
