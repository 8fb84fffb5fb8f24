// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/mailbox.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_format.h"

namespace hvd::rt {
namespace {

Frame FrameOf(FrameKind kind, MessageTag tag, size_t bytes) {
  Frame frame;
  frame.kind = kind;
  frame.channel = tag.channel;
  frame.step = tag.step;
  frame.bytes = bytes;
  return frame;
}

absl::Status WrongLength(size_t came, size_t expected) {
  return absl::InternalError(
      absl::StrFormat("a message of %d bytes came where %d were expected", came, expected));
}

absl::Status Broken(const char* rule) {
  return absl::InternalError(absl::StrFormat("it breaks the rules of hvd's transport: %s", rule));
}

}  // namespace

MailboxLimits MailboxLimits::For(int size) {
  constexpr size_t kOfAllPeers = size_t{128} << 20;
  MailboxLimits limits;
  limits.credit_bytes = std::clamp<size_t>(kOfAllPeers / std::max(1, size), 4 * limits.small_bytes,
                                           limits.credit_bytes);
  return limits;
}

void Mailbox::Post(const std::shared_ptr<Inbound>& receive) {
  if (Adopt(receive)) return;
  if (!IsSmall(receive->bytes)) return Grant(receive, 0);
  const Key key = KeyOf(receive->tag);
  Small& small = small_[key];
  if (small.arrived.empty()) {
    small.posted.push_back(receive);
    return;
  }
  const std::shared_ptr<Inbound> arrived = std::move(small.arrived.front());
  small.arrived.pop_front();
  if (small.arrived.empty()) small_.erase(key);
  if (arrived->announced != 0) --announcements_;
  if (arrived->bytes != receive->bytes) {
    receive->outcome.Fail(WrongLength(arrived->bytes, receive->bytes));
  } else if (arrived->announced != 0) {
    Grant(receive, arrived->announced);
  } else if (arrived->landed < arrived->bytes) {
    arrived->receive = receive;
  } else {
    Deliver(arrived, receive);
  }
}

// Takes the place of a receive that was granted and withdrawn before its message came.
bool Mailbox::Adopt(const std::shared_ptr<Inbound>& receive) {
  const auto [begin, end] = left_.equal_range(KeyOf(receive->tag));
  for (auto at = begin; at != end; ++at) {
    std::shared_ptr<Inbound>& place = granted_[at->second];
    if (IsSmall(place->bytes) != IsSmall(receive->bytes)) continue;
    if (place->bytes != receive->bytes) {
      receive->outcome.Fail(WrongLength(place->bytes, receive->bytes));
      return true;
    }
    receive->id = at->second;
    place = receive;
    left_.erase(at);
    return true;
  }
  return false;
}

void Mailbox::Grant(const std::shared_ptr<Inbound>& receive, uint64_t announced) {
  receive->id = next_id_++;
  granted_[receive->id] = receive;
  Frame frame = FrameOf(FrameKind::kGrant, receive->tag, receive->bytes);
  frame.id = receive->id;
  frame.offset = announced;
  out_->Put(frame, nullptr);
}

void Mailbox::Deliver(const std::shared_ptr<Inbound>& arrived,
                      const std::shared_ptr<Inbound>& receive) {
  kept_ -= CostOf(arrived->bytes);
  Taken(CostOf(arrived->bytes));
  if (receive->data != nullptr && arrived->bytes > 0) {
    memcpy(receive->data, arrived->own.get(), arrived->bytes);
  }
  receive->outcome.Done();
}

void Mailbox::Give(const std::shared_ptr<Outbound>& send) {
  if (IsSmall(send->bytes)) {
    if (used_ + CostOf(send->bytes) <= limits_.credit_bytes) {
      used_ += CostOf(send->bytes);
      out_->Put(FrameOf(FrameKind::kSmall, send->tag, send->bytes), send);
      return;
    }
    Frame frame = FrameOf(FrameKind::kAnnounce, send->tag, send->bytes);
    frame.id = next_id_++;
    announced_[frame.id] = send;
    out_->Put(frame, nullptr);
    return;
  }
  const Key key = KeyOf(send->tag);
  Large& large = large_[key];
  if (large.grants.empty()) {
    large.sends.push_back(send);
    return;
  }
  const Granted grant = large.grants.front();
  large.grants.pop_front();
  --grants_;
  if (large.grants.empty()) large_.erase(key);
  if (grant.bytes != send->bytes) {
    return send->outcome.Fail(WrongLength(send->bytes, grant.bytes));
  }
  PutWhole(send, grant.id);
}

void Mailbox::PutWhole(const std::shared_ptr<Outbound>& send, uint64_t id) {
  Frame frame = FrameOf(FrameKind::kChunk, send->tag, send->bytes);
  frame.id = id;
  out_->Put(frame, send);
}

void Mailbox::Withdraw(const std::shared_ptr<Inbound>& receive) {
  receive->data = nullptr;
  if (receive->id != 0) {
    if (granted_.count(receive->id) == 0) return;
    if (!receive->begun) left_.emplace(KeyOf(receive->tag), receive->id);
    return;
  }
  const auto found = small_.find(KeyOf(receive->tag));
  if (found == small_.end()) return;
  found->second.posted.remove(receive);
  if (found->second.posted.empty() && found->second.arrived.empty()) small_.erase(found);
}

void Mailbox::Withdraw(const std::shared_ptr<Outbound>& send) {
  std::erase_if(announced_, [&](const auto& entry) { return entry.second == send; });
  const auto found = large_.find(KeyOf(send->tag));
  if (found == large_.end()) return;
  found->second.sends.remove(send);
  if (found->second.sends.empty() && found->second.grants.empty()) large_.erase(found);
}

absl::StatusOr<Landing> Mailbox::Take(const Frame& frame) {
  switch (frame.kind) {
    case FrameKind::kSmall:
      return TakeSmall(frame);
    case FrameKind::kChunk:
      return TakeChunk(frame);
    case FrameKind::kAnnounce:
      if (absl::Status ok = TakeAnnounce(frame); !ok.ok()) return ok;
      return Landing();
    case FrameKind::kGrant:
      if (absl::Status ok = TakeGrant(frame); !ok.ok()) return ok;
      return Landing();
    case FrameKind::kCredit:
      if (frame.bytes > used_) return Broken("credit comes back that was never used");
      used_ -= frame.bytes;
      return Landing();
    default:
      return Broken("a frame of no known kind");
  }
}

absl::StatusOr<Landing> Mailbox::TakeSmall(const Frame& frame) {
  if (!IsSmall(frame.bytes)) return Broken("a small message that is not small");
  Landing landing{nullptr, 0, frame.bytes, true};
  const Key key = KeyOf(frame.tag());
  Small& small = small_[key];
  if (!small.posted.empty()) {
    landing.to = std::move(small.posted.front());
    small.posted.pop_front();
    if (small.posted.empty() && small.arrived.empty()) small_.erase(key);
    landing.to->begun = true;
    if (landing.to->bytes == frame.bytes) return landing;
    landing.to->outcome.Fail(WrongLength(frame.bytes, landing.to->bytes));
    landing.to = std::make_shared<Inbound>();  // nowhere
    landing.to->tag = frame.tag();
    landing.to->bytes = frame.bytes;
    return landing;
  }
  kept_ += CostOf(frame.bytes);
  if (kept_ > limits_.credit_bytes) return Broken("more small messages than it has credit for");
  landing.to = std::make_shared<Inbound>();
  landing.to->tag = frame.tag();
  landing.to->bytes = frame.bytes;
  landing.to->own.reset(new std::byte[frame.bytes]);
  landing.to->data = landing.to->own.get();
  small.arrived.push_back(landing.to);
  return landing;
}

absl::StatusOr<Landing> Mailbox::TakeChunk(const Frame& frame) {
  const auto found = granted_.find(frame.id);
  if (found == granted_.end()) return Broken("bytes of a message that was not granted");
  Inbound& inbound = *found->second;
  if (frame.bytes == 0 && inbound.bytes != 0) return Broken("an empty part of a message");
  if (frame.offset > inbound.bytes || frame.bytes > inbound.bytes - frame.offset) {
    return Broken("bytes beyond a message's end");
  }
  if (!inbound.begun && inbound.data == nullptr) {
    const auto [begin, end] = left_.equal_range(KeyOf(inbound.tag));
    const auto at = std::find_if(begin, end, [&](const auto& e) { return e.second == frame.id; });
    if (at != end) left_.erase(at);
  }
  inbound.begun = true;
  return Landing{found->second, frame.offset, frame.bytes, false};
}

absl::Status Mailbox::TakeAnnounce(const Frame& frame) {
  if (!IsSmall(frame.bytes) || frame.id == 0) return Broken("a wrong announcement");
  const Key key = KeyOf(frame.tag());
  Small& small = small_[key];
  if (!small.posted.empty()) {
    const std::shared_ptr<Inbound> receive = std::move(small.posted.front());
    small.posted.pop_front();
    if (small.posted.empty() && small.arrived.empty()) small_.erase(key);
    if (receive->bytes == frame.bytes) {
      Grant(receive, frame.id);
    } else {
      receive->outcome.Fail(WrongLength(frame.bytes, receive->bytes));
    }
    return absl::OkStatus();
  }
  if (++announcements_ > limits_.pending) return Broken("too many announcements");
  auto arrived = std::make_shared<Inbound>();
  arrived->tag = frame.tag();
  arrived->bytes = frame.bytes;
  arrived->announced = frame.id;
  small.arrived.push_back(std::move(arrived));
  return absl::OkStatus();
}

absl::Status Mailbox::TakeGrant(const Frame& frame) {
  if (frame.offset != 0) {
    const auto found = announced_.find(frame.offset);
    if (found == announced_.end()) return absl::OkStatus();  // it was abandoned
    const std::shared_ptr<Outbound> send = std::move(found->second);
    announced_.erase(found);
    if (frame.bytes != send->bytes) return Broken("a grant of another length");
    PutWhole(send, frame.id);
    return absl::OkStatus();
  }
  const Key key = KeyOf(frame.tag());
  Large& large = large_[key];
  if (large.sends.empty()) {
    if (++grants_ > limits_.pending) return Broken("too many grants");
    large.grants.push_back({frame.id, frame.bytes});
    return absl::OkStatus();
  }
  const std::shared_ptr<Outbound> send = std::move(large.sends.front());
  large.sends.pop_front();
  if (large.sends.empty()) large_.erase(key);
  if (frame.bytes == send->bytes) {
    PutWhole(send, frame.id);
  } else {
    send->outcome.Fail(WrongLength(send->bytes, frame.bytes));
  }
  return absl::OkStatus();
}

void Mailbox::Landed(const Landing& landing) {
  const std::shared_ptr<Inbound>& to = landing.to;
  to->landed += landing.bytes;
  if (!landing.takes_credit) {
    if (to->landed < to->bytes) return;
    granted_.erase(to->id);
    to->outcome.Done();
  } else if (to->own == nullptr) {
    Taken(CostOf(to->bytes));
    to->outcome.Done();
  } else if (to->receive != nullptr) {
    Deliver(to, to->receive);
  }
}

void Mailbox::Taken(size_t cost) {
  taken_ += cost;
  if (taken_ < limits_.credit_bytes / 4) return;
  out_->Put(FrameOf(FrameKind::kCredit, {}, taken_), nullptr);
  taken_ = 0;
}

void Mailbox::Fail(const absl::Status& status) {
  for (auto& [key, small] : small_) {
    for (const auto& receive : small.posted) receive->outcome.Fail(status);
    for (const auto& arrived : small.arrived) {
      if (arrived->receive != nullptr) arrived->receive->outcome.Fail(status);
    }
  }
  for (auto& [id, receive] : granted_) receive->outcome.Fail(status);
  for (auto& [key, large] : large_) {
    for (const auto& send : large.sends) send->outcome.Fail(status);
  }
  for (auto& [id, send] : announced_) send->outcome.Fail(status);
}

}  // namespace hvd::rt
