// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/lane.h"

#include <sys/epoll.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace hvd::rt {
namespace {

// At one go, so that what has come is worked on while it is in the cache, and others get a turn.
constexpr size_t kReadBytes = size_t{256} << 10;
constexpr size_t kWriteBytes = size_t{512} << 10;

}  // namespace

void Lane::Attach(Socket socket, Poller* poller) {
  socket_ = std::move(socket);
  poller_ = poller;
  SendSmallOnesAtOnce(socket_);
  blocked_ = watches_writing_ = false;
  if (absl::Status watched = poller_->Watch(socket_, EPOLLIN, this); !watched.ok()) {
    return owner_->OnBroken(this, watched);
  }
  Flush();
}

void Lane::Put(const Frame& frame, const std::shared_ptr<Outbound>& message) {
  queue_.push_back({frame, message});
  queued_bytes_ += queue_.back().size();
}

void Lane::OnReady(uint32_t events) {
  if (!attached()) return;
  if ((events & EPOLLOUT) != 0) {
    blocked_ = false;
    Flush();
  }
  size_t read = 0;
  while (attached() && (events & ~uint32_t{EPOLLOUT}) != 0 && read < kReadBytes) {
    const absl::StatusOr<size_t> n = ReadSome();
    if (!n.ok()) return owner_->OnBroken(this, n.status());
    if (*n == 0) return;
    read += *n;
  }
}

void Lane::WatchWriting(bool watch) {
  if (watch == watches_writing_ || !attached()) return;
  watches_writing_ = watch;
  const uint32_t out = watch ? uint32_t{EPOLLOUT} : 0;
  if (absl::Status watched = poller_->Watch(socket_, EPOLLIN | out, this); !watched.ok()) {
    owner_->OnBroken(this, watched);
  }
}

// Bytes that are left when the turn is over go on when the system says that it takes more.
void Lane::Flush() {
  if (!attached() || blocked_) return;
  size_t sent = 0;
  while (!queue_.empty() && sent < kWriteBytes) {
    const absl::StatusOr<size_t> n = SendQueue();
    if (!n.ok()) return owner_->OnBroken(this, n.status());
    if (*n == 0) break;
    sent += *n;
    Advance(*n);
  }
  blocked_ = !queue_.empty();
  WatchWriting(blocked_);
}

// Several frames in one call of the system.
absl::StatusOr<size_t> Lane::SendQueue() {
  constexpr size_t kParts = 32;
  iovec parts[kParts];
  size_t count = 0;
  size_t bytes = 0;
  for (Item& item : queue_) {
    if (count + 2 > kParts || bytes >= kWriteBytes) break;
    size_t skip = item.written;
    if (skip < sizeof(Frame)) {
      parts[count++] = {reinterpret_cast<char*>(&item.frame) + skip, sizeof(Frame) - skip};
      skip = 0;
    } else {
      skip -= sizeof(Frame);
    }
    if (item.message != nullptr && item.frame.bytes > skip) {
      const std::byte* from = item.message->data + item.frame.offset + skip;
      parts[count++] = {const_cast<std::byte*>(from), item.frame.bytes - skip};
    }
    bytes += item.size() - item.written;
  }
  msghdr message = {};
  message.msg_iov = parts;
  message.msg_iovlen = count;
  const ssize_t n = sendmsg(socket_.fd(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n >= 0) return static_cast<size_t>(n);
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return size_t{0};
  return SocketError(errno, "sending");
}

void Lane::Advance(size_t written) {
  queued_bytes_ -= written;
  while (!queue_.empty()) {
    Item& item = queue_.front();
    const size_t part = std::min(written, item.size() - item.written);
    if (part > 0 && item.message != nullptr) item.message->begun = true;
    item.written += part;
    written -= part;
    if (item.written < item.size()) return;
    if (item.message != nullptr) {
      item.message->written += item.frame.bytes;
      if (item.message->written == item.message->bytes) item.message->outcome.Done();
    }
    queue_.pop_front();
  }
}

// The rest of what is landing straight to its place, and what follows it into the room.
absl::StatusOr<size_t> Lane::ReadSome() {
  std::byte thrown_away[4096];
  iovec parts[2];
  int count = 0;
  size_t left = 0;
  if (landing_.to != nullptr) {
    left = landing_.bytes - landed_;
    std::byte* to = landing_.to->data;
    if (to == nullptr) {
      left = std::min(left, sizeof(thrown_away));
      parts[count++] = {thrown_away, left};
    } else {
      parts[count++] = {to + landing_.offset + landed_, left};
    }
  }
  if (landing_.to == nullptr || landed_ + left == landing_.bytes) {
    parts[count++] = {room_.data() + in_room_, room_.size() - in_room_};
  }
  const ssize_t n = readv(socket_.fd(), parts, count);
  if (n == 0) return absl::UnavailableError("the other end closed the connection");
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return size_t{0};
  if (n < 0) return SocketError(errno, "receiving");
  const size_t to_place = std::min(static_cast<size_t>(n), left);
  in_room_ += static_cast<size_t>(n) - to_place;
  landed_ += to_place;
  if (landing_.to != nullptr && landed_ == landing_.bytes) EndLanding();
  if (absl::Status taken = TakeFrames(); !taken.ok()) return taken;
  return static_cast<size_t>(n);
}

absl::Status Lane::TakeFrames() {
  size_t at = 0;
  while (landing_.to == nullptr && in_room_ - at >= sizeof(Frame)) {
    Frame frame;
    memcpy(&frame, room_.data() + at, sizeof(Frame));
    at += sizeof(Frame);
    if (absl::Status begun = BeginLanding(frame, &at); !begun.ok()) return begun;
  }
  in_room_ -= at;
  if (at > 0 && in_room_ > 0) memmove(room_.data(), room_.data() + at, in_room_);
  return absl::OkStatus();
}

absl::Status Lane::BeginLanding(const Frame& frame, size_t* at) {
  absl::StatusOr<Landing> landing = owner_->OnFrame(frame);
  if (!landing.ok()) return landing.status();
  if (landing->to == nullptr) return absl::OkStatus();
  landing_ = *std::move(landing);
  landed_ = std::min(landing_.bytes, in_room_ - *at);
  if (landing_.to->data != nullptr && landed_ > 0) {
    memcpy(landing_.to->data + landing_.offset, room_.data() + *at, landed_);
  }
  *at += landed_;
  if (landed_ == landing_.bytes) EndLanding();
  return absl::OkStatus();
}

void Lane::EndLanding() {
  const Landing done = std::move(landing_);
  landing_ = {};
  landed_ = 0;
  owner_->OnLanded(done);
}

bool Lane::Forget(const std::shared_ptr<Outbound>& message) {
  if (message->begun) return false;
  std::erase_if(queue_, [&](const Item& item) {
    if (item.message != message) return false;
    queued_bytes_ -= item.size();
    return true;
  });
  return true;
}

void Lane::Fail(const absl::Status& status) {
  for (const Item& item : queue_) {
    if (item.message != nullptr) item.message->outcome.Fail(status);
  }
  queue_.clear();
  queued_bytes_ = 0;
  if (landing_.to != nullptr) {
    landing_.to->outcome.Fail(status);
    if (landing_.to->receive != nullptr) landing_.to->receive->outcome.Fail(status);
  }
  landing_ = {};
  Close();
}

void Lane::Close() {
  if (attached()) poller_->Close(&socket_);
}

void Lane::SayGoodbye() {
  if (!attached()) return;
  // In the middle of something there is no place for a frame.
  const bool between = queue_.empty() || queue_.front().written == 0;
  Frame frame;
  frame.kind = FrameKind::kGoodbye;
  if (between) (void)SendSome(socket_, &frame, sizeof(frame)).ok();
  std::byte unread[4096];
  for (int i = 0; i < 64; ++i) {
    const absl::StatusOr<size_t> n = ReceiveSome(socket_, unread, sizeof(unread));
    if (!n.ok() || *n == 0) break;
  }
  Close();
}

}  // namespace hvd::rt
