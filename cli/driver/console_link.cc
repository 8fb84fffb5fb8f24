// SPDX-License-Identifier: Apache-2.0
#include "cli/driver/console_link.h"

#include <algorithm>
#include <utility>

namespace hvd::cli {
namespace {

// Output under way to the console: what it has not taken may hold nothing else up.
constexpr uint64_t kWindow = 128 * 1024;

size_t OutputBytes(const Frame& frame) {
  return frame.kind == FrameKind::kOutput ? frame.text.size() : 0;
}

}  // namespace

void DriverConsole::Put(Frame frame) {
  if (socket_.valid()) urgent_.push_back(std::move(frame));
}

void DriverConsole::PutInOrder(Frame frame) {
  if (!socket_.valid()) return;
  queued_bytes_ += OutputBytes(frame);
  in_order_.push_back(std::move(frame));
}

bool DriverConsole::MaySendInOrder() const {
  if (in_order_.empty()) return false;
  return OutputBytes(in_order_.front()) == 0 || sent_ < taken_ + kWindow;
}

// False: no more can be sent now.
bool DriverConsole::SendFirst(std::deque<Frame>* queue) {
  const FrameResult result = SendFrame(socket_.get(), queue->front());
  if (result == FrameResult::kWouldBlock) return false;
  if (result == FrameResult::kGone) {
    urgent_.clear();
    in_order_.clear();
    queued_bytes_ = 0;
    return false;
  }
  const size_t bytes = OutputBytes(queue->front());
  queue->pop_front();
  sent_ += bytes;
  queued_bytes_ -= bytes;
  return true;
}

void DriverConsole::Flush() {
  while (wants_room()) {
    if (!SendFirst(urgent_.empty() ? &in_order_ : &urgent_)) return;
  }
}

void DriverConsole::ForgetOutput() {
  const auto is_output = [](const Frame& frame) { return frame.kind == FrameKind::kOutput; };
  in_order_.erase(std::remove_if(in_order_.begin(), in_order_.end(), is_output), in_order_.end());
  queued_bytes_ = 0;
}

void DriverConsole::Close() {
  urgent_.clear();
  in_order_.clear();
  queued_bytes_ = 0;
  socket_.Reset();
}

}  // namespace hvd::cli
