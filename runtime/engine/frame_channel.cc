#include "runtime/engine/frame_channel.h"

#include <algorithm>
#include <cstring>

namespace hvd {

FrameChannel::FrameChannel(Transport* transport, int peer, uint16_t channel, uint64_t generation)
    : transport_(transport),
      peer_(peer),
      tag_{channel, static_cast<uint32_t>(generation)},
      generation_(generation) {}

absl::Status FrameChannel::Send(const std::string& message) {
  if (message.size() > kMaxMessage) {
    return absl::InternalError("an agreement message to rank " + std::to_string(peer_) + " has " +
                               std::to_string(message.size()) + " bytes; 16 MiB are the most");
  }
  auto sending = std::make_unique<Sending>();
  sending->frame = std::make_unique<Frame>();
  Frame& frame = *sending->frame;
  frame.length = message.size();
  frame.generation = generation_;
  const size_t part = std::min(frame.bytes.size(), message.size());
  std::memcpy(frame.bytes.data(), message.data(), part);
  auto sent = transport_->Send(peer_, tag_, &frame, sizeof(Frame));
  if (!sent.ok()) return sent.status();
  sending->frame_sent = std::move(*sent);
  transport_->notes().Sent(peer_, tag_);
  if (part < message.size()) {
    sending->rest = message.substr(part);
    sent = transport_->Send(peer_, tag_, sending->rest.data(), sending->rest.size());
    if (!sent.ok()) return sent.status();
    sending->rest_sent = std::move(*sent);
    transport_->notes().Sent(peer_, tag_);
  }
  sending_.push_back(std::move(sending));
  return absl::OkStatus();
}

absl::Status FrameChannel::PostReceive(void* data, size_t bytes) {
  auto request = transport_->Receive(peer_, tag_, data, bytes);
  if (!request.ok()) return request.status();
  receiving_ = std::move(*request);
  transport_->notes().Asked(peer_, tag_);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<std::string>> FrameChannel::Receive() {
  while (true) {
    if (receiving_ == nullptr) {
      absl::Status posted = receives_rest_ ? PostReceive(rest_.data(), rest_.size())
                                           : PostReceive(incoming_.get(), sizeof(Frame));
      if (!posted.ok()) return posted;
    }
    const absl::StatusOr<bool> came = receiving_->Test();
    if (!came.ok()) return came.status();
    if (!*came) return std::optional<std::string>();
    receiving_ = nullptr;
    transport_->notes().Came(peer_, tag_);
    const Frame& frame = *incoming_;
    const bool is_ours = frame.generation == generation_;
    if (receives_rest_) {
      receives_rest_ = false;
      if (!is_ours) continue;
      return std::optional<std::string>(std::string(frame.bytes.data(), frame.bytes.size()) +
                                        rest_);
    }
    if (frame.length > kMaxMessage) {
      return absl::InternalError("rank " + std::to_string(peer_) +
                                 " sent an agreement message larger than 16 MiB");
    }
    if (frame.length <= frame.bytes.size()) {
      if (!is_ours) continue;
      return std::optional<std::string>(std::string(frame.bytes.data(), frame.length));
    }
    receives_rest_ = true;
    rest_.resize(frame.length - frame.bytes.size());
  }
}

absl::StatusOr<bool> FrameChannel::HasUnsent() {
  while (!sending_.empty()) {
    const Sending& oldest = *sending_.front();
    for (TransportRequest* request : {oldest.frame_sent.get(), oldest.rest_sent.get()}) {
      if (request == nullptr) continue;
      const absl::StatusOr<bool> sent = request->Test();
      if (!sent.ok()) return sent.status();
      if (!*sent) return true;
    }
    sending_.pop_front();
  }
  return false;
}

}  // namespace hvd
