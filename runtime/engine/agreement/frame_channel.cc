// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/agreement/frame_channel.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace hvd::rt {

FrameChannel::FrameChannel(const FramePlace& place)
    : place_(place), tag_{place.channel, static_cast<uint32_t>(place.generation)} {}

absl::Status FrameChannel::Send(Message message) {
  if (const absl::StatusOr<bool> unsent = HasUnsent(); !unsent.ok()) return unsent.status();
  Sending& sending = *sending_.emplace_back(std::make_unique<Sending>());
  sending.message = std::move(message);
  const std::string& bytes = *sending.message;
  sending.frame.length = bytes.size();
  sending.frame.generation = place_.generation;
  size_t at = std::min(sending.frame.bytes.size(), bytes.size());
  std::memcpy(sending.frame.bytes.data(), bytes.data(), at);
  absl::Status sent = SendPart(&sending, &sending.frame, sizeof(Frame));
  while (sent.ok() && at < bytes.size()) {
    const size_t part = std::min(place_.part_bytes, bytes.size() - at);
    sent = SendPart(&sending, bytes.data() + at, part);
    at += part;
  }
  return sent;
}

absl::Status FrameChannel::SendPart(Sending* sending, const void* data, size_t bytes) {
  auto sent = place_.transport->Send(place_.peer, tag_, data, bytes);
  if (!sent.ok()) return sent.status();
  sending->sends.push_back(std::move(*sent));
  place_.transport->notes().Sent(place_.peer, tag_);
  return absl::OkStatus();
}

size_t FrameChannel::NextPart() const {
  return static_cast<size_t>(std::min<uint64_t>(place_.part_bytes, missing_));
}

// The parts of a message that is not for this user come one over the other.
absl::Status FrameChannel::PostReceive() {
  void* data = incoming_.get();
  size_t bytes = sizeof(Frame);
  if (missing_ > 0) {
    bytes = NextPart();
    const size_t kept = message_.size();
    message_.resize(kept + bytes);
    data = message_.data() + kept;
  }
  auto request = place_.transport->Receive(place_.peer, tag_, data, bytes);
  if (!request.ok()) return request.status();
  receiving_ = std::move(*request);
  place_.transport->notes().Asked(place_.peer, tag_);
  return absl::OkStatus();
}

// Takes what has come as a frame.
void FrameChannel::TakeFrame() {
  const Frame& frame = *incoming_;
  const size_t part = static_cast<size_t>(std::min<uint64_t>(frame.length, frame.bytes.size()));
  message_.assign(frame.bytes.data(), part);
  missing_ = frame.length - part;
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
    place_.transport->notes().Came(place_.peer, tag_);
    if (missing_ > 0) {
      missing_ -= NextPart();
    } else {
      TakeFrame();
    }
    const bool is_ours = incoming_->generation == place_.generation;
    if (!is_ours) message_.clear();
    if (is_ours && missing_ == 0) return std::optional<std::string>(std::exchange(message_, {}));
  }
}

absl::StatusOr<bool> FrameChannel::HasUnsent() {
  while (!sending_.empty()) {
    auto& sends = sending_.front()->sends;
    while (!sends.empty()) {
      const absl::StatusOr<bool> sent = sends.front()->Test();
      if (!sent.ok()) return sent.status();
      if (!*sent) return true;
      sends.pop_front();
    }
    sending_.pop_front();
  }
  return false;
}

}  // namespace hvd::rt
