// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/dialer.h"

#include <sys/epoll.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hvd {

void Dialer::OnTime(Clock::time_point now) {
  if (phase_ == Phase::kNothing || now < due_) return;
  if (phase_ == Phase::kNextTry) return Try(now);
  if (phase_ == Phase::kChallenge) {  // reached, so it is only busy, as far as we can tell
    failing_since_ = Clock::time_point::max();
    tried_at_ = now;
  }
  TryFailed(absl::DeadlineExceededError("no answer"));
}

// An address that never answers must not keep the next one waiting. A peer that has been reached
// may take its time: it looks at its door when it waits for something itself.
void Dialer::Try(Clock::time_point now) {
  tried_at_ = now;
  absl::StatusOr<Socket> socket = BeginConnect(address());
  if (!socket.ok()) return TryFailed(socket.status());
  socket_ = *std::move(socket);
  words_.clear();
  phase_ = Phase::kConnection;
  due_ = now + (plan_.addresses.size() > 1 ? plan_.each : plan_.limit);
  if (absl::Status watched = poller_->Watch(socket_, EPOLLOUT, this); !watched.ok()) {
    TryFailed(watched);
  }
}

void Dialer::OnReady(uint32_t) {
  if (phase_ == Phase::kNothing || phase_ == Phase::kNextTry) return;
  if (absl::Status stepped = Step(); !stepped.ok()) TryFailed(stepped);
}

absl::Status Dialer::Step() {
  if (phase_ == Phase::kConnection) {
    if (absl::Status connected = ConnectResult(socket_); !connected.ok()) return connected;
    phase_ = Phase::kChallenge;
    if (plan_.addresses.size() == 1) due_ = Clock::time_point::max();
    return poller_->Watch(socket_, EPOLLIN, this);
  }
  const bool challenged = phase_ == Phase::kConfirmation;
  const absl::StatusOr<bool> all = Read(challenged ? kConfirmationBytes : kChallengeBytes);
  if (!all.ok() || !*all) return all.status();
  if (!challenged) return Answer();
  if (!CheckConfirmation(plan_.secret, challenge_, answer_, words_)) {
    return absl::UnavailableError("who listens there does not know the epoch's secret");
  }
  phase_ = Phase::kNothing;
  due_ = Clock::time_point::max();
  owner_->OnDialed(this, std::move(socket_), address().Text());
  return absl::OkStatus();
}

absl::Status Dialer::Answer() {
  if (!IsChallenge(words_)) {
    return absl::UnavailableError("who listens there is not a rank of hvd, or of another version");
  }
  const absl::StatusOr<std::string> nonce = MakeNonce();
  if (!nonce.ok()) return nonce.status();
  challenge_ = std::exchange(words_, {});
  tried_at_ = Clock::now();  // what fails from here on did not fail while the peer was busy
  answer_ = MakeAnswer(plan_.secret, challenge_, plan_.name, *nonce);
  phase_ = Phase::kConfirmation;
  due_ = Clock::time_point::max();
  const absl::StatusOr<size_t> sent = SendSome(socket_, answer_.data(), answer_.size());
  if (!sent.ok()) return sent.status();
  return *sent == answer_.size() ? absl::OkStatus() : absl::UnavailableError("it takes no words");
}

absl::StatusOr<bool> Dialer::Read(size_t bytes) {
  const size_t had = words_.size();
  words_.resize(bytes);
  const absl::StatusOr<size_t> n = ReceiveSome(socket_, words_.data() + had, bytes - had);
  words_.resize(had + (n.ok() ? *n : 0));
  if (!n.ok()) return n.status();
  return words_.size() == bytes;
}

void Dialer::TryFailed(const absl::Status& why) {
  const Clock::time_point now = Clock::now();
  poller_->Close(&socket_);
  said_.resize(plan_.addresses.size());
  said_[at_ % said_.size()] = absl::StrCat(address().Text(), ": ", why.message());
  ++at_;
  failing_since_ = std::min(failing_since_, tried_at_);
  const bool round_done = at_ % plan_.addresses.size() == 0;
  if (round_done && now - failing_since_ >= plan_.limit) {
    phase_ = Phase::kNothing;
    due_ = Clock::time_point::max();
    return owner_->OnDialFailed(this, absl::StrJoin(said_, "; "));
  }
  phase_ = Phase::kNextTry;
  due_ = round_done ? now + pause_ : now;
  if (round_done) pause_ = std::min<Clock::duration>(2 * pause_, std::chrono::seconds(1));
}

}  // namespace hvd
