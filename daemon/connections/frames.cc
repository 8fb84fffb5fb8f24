// SPDX-License-Identifier: Apache-2.0
#include "daemon/connections/frames.h"

#include <cstdint>

namespace hvd::daemon {
namespace {

constexpr size_t kHeader = 4;

}  // namespace

std::string Frame(std::string_view message) {
  std::string frame;
  frame.reserve(kHeader + message.size());
  for (size_t i = 0; i < kHeader; ++i) {
    frame += static_cast<char>(message.size() >> (8 * i) & 0xff);
  }
  frame += message;
  return frame;
}

bool FrameCutter::Next(std::string* message) {
  if (broken_ || buffer_.size() < kHeader) return false;
  size_t length = 0;
  for (size_t i = 0; i < kHeader; ++i) {
    length |= static_cast<size_t>(static_cast<uint8_t>(buffer_[i])) << (8 * i);
  }
  if (length > most_) {
    broken_ = true;
    return false;
  }
  if (buffer_.size() < kHeader + length) return false;
  message->assign(buffer_, kHeader, length);
  buffer_.erase(0, kHeader + length);
  return true;
}

}  // namespace hvd::daemon
