// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/peer.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace hvd::rt {
namespace {

// Large messages are cut so that lanes can share them; less than this is not worth a cut.
constexpr size_t kPieceBytes = size_t{1} << 20;
// A lane that has so much to send is as fast as it can be.
constexpr size_t kFullBytes = size_t{2} << 20;

}  // namespace

Peer::Peer(std::string name, const MailboxLimits& limits, Poller* poller,
           std::vector<Peer*>* unflushed)
    : name_(std::move(name)),
      limits_(limits),
      poller_(poller),
      unflushed_(unflushed),
      mailbox_(limits, this) {
  for (int lane = 0; lane < kLanes; ++lane) {
    const auto ahead = lane == 0 ? Lane::ReadsAhead::kMuch : Lane::ReadsAhead::kOneFrame;
    lanes_.push_back(std::make_unique<Lane>(this, ahead));
  }
}

bool Peer::attached() const {
  return std::all_of(lanes_.begin(), lanes_.end(), [](const auto& l) { return l->attached(); });
}

void Peer::Attach(int lane, Socket socket, const std::string& where) {
  if (!status_.ok() || left_) return;
  where_ = where;
  lanes_[lane]->Attach(std::move(socket), poller_);
}

void Peer::Post(const std::shared_ptr<Inbound>& receive) {
  if (!status_.ok()) return receive->outcome.Fail(status_);
  mailbox_.Post(receive);
}

void Peer::Give(const std::shared_ptr<Outbound>& send) {
  if (!status_.ok()) return send->outcome.Fail(status_);
  mailbox_.Give(send);
  FlushLanes();
}

void Peer::Withdraw(const std::shared_ptr<Inbound>& receive) { mailbox_.Withdraw(receive); }

// Its memory goes. A small one may be on its way, so it goes on from a copy; of a large one nothing
// is sent any more, and a connection in the middle of one is of no use.
void Peer::Withdraw(const std::shared_ptr<Outbound>& send) {
  if (send->bytes <= limits_.small_bytes) {
    send->own.reset(new std::byte[send->bytes]);
    if (send->bytes > 0) memcpy(send->own.get(), send->data, send->bytes);
    send->data = send->own.get();
    return;
  }
  mailbox_.Withdraw(send);
  for (const auto& lane : lanes_) {
    if (!lane->Forget(send)) return Break(absl::CancelledError("a large message was given up"));
  }
}

void Peer::PutOff() {
  if (put_off_) return;
  put_off_ = true;
  unflushed_->push_back(this);
}

void Peer::Flush() {
  put_off_ = false;
  FlushLanes();
}

void Peer::FlushLanes() {
  for (const auto& lane : lanes_) lane->Flush();
}

void Peer::Put(const Frame& frame, const std::shared_ptr<Outbound>& message) {
  if (left_) return;
  PutOff();
  if (frame.kind != FrameKind::kChunk) return lanes_[0]->Put(frame, message);
  Frame piece = frame;
  size_t left = frame.bytes;
  do {
    piece.bytes = left <= kPieceBytes + kPieceBytes / 2 ? left : kPieceBytes;
    LaneForLarge()->Put(piece, message);
    piece.offset += piece.bytes;
    left -= piece.bytes;
  } while (left > 0);
}

// Two connections in turn cost more than one, so the second is for what the first cannot take.
Lane* Peer::LaneForLarge() {
  Lane* least = lanes_[1].get();
  if (least->queued_bytes() < kFullBytes) return least;
  for (const auto& lane : lanes_) {
    if (lane != lanes_[0] && lane->queued_bytes() < least->queued_bytes()) least = lane.get();
  }
  return least;
}

absl::StatusOr<Landing> Peer::OnFrame(const Frame& frame) {
  if (frame.kind != FrameKind::kGoodbye) return mailbox_.Take(frame);
  left_ = true;
  return Landing();
}

// A peer that has left closes what it had open. That is no failure of anything that it had to do.
void Peer::OnBroken(Lane* lane, const absl::Status& why) {
  if (left_) return lane->Close();
  Break(absl::Status(why.code(), absl::StrCat(name_, " at ", where_, ": ", why.message())));
}

void Peer::Break(const absl::Status& why) {
  if (!status_.ok()) return;
  status_ = why;
  mailbox_.Fail(status_);
  for (const auto& lane : lanes_) lane->Fail(status_);
}

void Peer::SayGoodbye() {
  for (const auto& lane : lanes_) lane->SayGoodbye();
}

}  // namespace hvd::rt
