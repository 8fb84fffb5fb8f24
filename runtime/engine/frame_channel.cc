#include "runtime/engine/frame_channel.h"

#include <algorithm>
#include <cstring>

namespace hvd {

FrameChannel::FrameChannel(Transport* transport, int peer, uint16_t channel)
    : transport_(transport), peer_(peer), tag_{channel, 0} {}

absl::Status FrameChannel::Send(const std::string& message) {
  size_t at = 0;
  do {
    auto frame = std::make_unique<Frame>();
    frame->rest = static_cast<uint32_t>(message.size() - at);
    const size_t part = std::min(frame->bytes.size(), message.size() - at);
    std::memcpy(frame->bytes.data(), message.data() + at, part);
    at += part;
    auto request = transport_->Send(peer_, tag_, frame.get(), sizeof(Frame));
    if (!request.ok()) return request.status();
    sending_.push_back({std::move(frame), std::move(*request)});
  } while (at < message.size());
  return absl::OkStatus();
}

absl::Status FrameChannel::PostReceive() {
  auto request = transport_->Receive(peer_, tag_, &incoming_, sizeof(Frame));
  if (!request.ok()) return request.status();
  receiving_ = std::move(*request);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<std::string>> FrameChannel::Receive() {
  while (true) {
    if (receiving_ == nullptr) {
      if (absl::Status posted = PostReceive(); !posted.ok()) return posted;
    }
    const absl::StatusOr<bool> came = receiving_->Test();
    if (!came.ok()) return came.status();
    if (!*came) return std::optional<std::string>();
    receiving_ = nullptr;
    if (incoming_.rest + assembled_.size() > kMaxMessage) {
      return absl::InternalError("rank " + std::to_string(peer_) +
                                 " sent an agreement message larger than 16 MiB");
    }
    const size_t part = std::min<size_t>(incoming_.bytes.size(), incoming_.rest);
    assembled_.append(incoming_.bytes.data(), part);
    if (part == incoming_.rest) {
      std::optional<std::string> message(std::move(assembled_));
      assembled_.clear();
      return message;
    }
  }
}

absl::StatusOr<bool> FrameChannel::HasUnsent() {
  while (!sending_.empty()) {
    const absl::StatusOr<bool> sent = sending_.front().request->Test();
    if (!sent.ok()) return sent.status();
    if (!*sent) return true;
    sending_.pop_front();
  }
  return false;
}

}  // namespace hvd
