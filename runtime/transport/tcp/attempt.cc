// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/attempt.h"

#include <sys/epoll.h>

#include <utility>

namespace hvd::rt {

absl::Status Attempt::Begin() {
  from_.clear();
  words_.clear();
  absl::StatusOr<Socket> socket = BeginConnect(plan_.address.at);
  if (!socket.ok()) return socket.status();
  socket_ = *std::move(socket);
  from_ = LocalHost(socket_);
  phase_ = Phase::kConnection;
  return poller_->Watch(socket_, EPOLLOUT, this);
}

void Attempt::Rest() {
  poller_->Close(&socket_);
  phase_ = Phase::kRest;
}

void Attempt::OnReady(uint32_t) {
  const Phase before = phase_;
  const absl::Status heard = Hear();
  if (!heard.ok()) return owner_->OnAttemptFailed(this, heard);
  if (phase_ == before) return;
  if (phase_ == Phase::kChallenge) return owner_->OnConnected(this);
  if (phase_ == Phase::kMayAnswer) return owner_->OnChallenged(this);
  if (phase_ == Phase::kRest) return owner_->OnProven(this, std::move(socket_));
}

absl::Status Attempt::Hear() {
  switch (phase_) {
    case Phase::kRest:
      return absl::OkStatus();
    case Phase::kConnection:
      if (absl::Status connected = ConnectResult(socket_); !connected.ok()) return connected;
      phase_ = Phase::kChallenge;
      return poller_->Watch(socket_, EPOLLIN, this);
    case Phase::kMayAnswer:
      return absl::UnavailableError("the other end closed the connection");
    case Phase::kChallenge:
    case Phase::kConfirmation:
      break;
  }
  const bool challenged = phase_ == Phase::kConfirmation;
  const absl::StatusOr<bool> all = Read(challenged ? kConfirmationBytes : kChallengeBytes);
  if (!all.ok() || !*all) return all.status();
  if (!challenged) {
    if (!IsChallenge(words_)) {
      return absl::UnavailableError(
          "who listens there is not a rank of hvd, or of another version");
    }
    challenge_ = std::exchange(words_, {});
    phase_ = Phase::kMayAnswer;
    return absl::OkStatus();
  }
  if (!CheckConfirmation(plan_.secret, challenge_, answer_, words_)) {
    return absl::UnavailableError("who listens there does not know the epoch's secret");
  }
  phase_ = Phase::kRest;
  return absl::OkStatus();
}

absl::Status Attempt::Answer() {
  const absl::StatusOr<std::string> nonce = MakeNonce();
  if (!nonce.ok()) return nonce.status();
  answer_ = MakeAnswer(plan_.secret, challenge_, plan_.name, *nonce);
  phase_ = Phase::kConfirmation;
  const absl::StatusOr<size_t> sent = SendSome(socket_, answer_.data(), answer_.size());
  if (!sent.ok()) return sent.status();
  return *sent == answer_.size() ? absl::OkStatus() : absl::UnavailableError("it takes no words");
}

absl::StatusOr<bool> Attempt::Read(size_t bytes) {
  const size_t had = words_.size();
  words_.resize(bytes);
  const absl::StatusOr<size_t> n = ReceiveSome(socket_, words_.data() + had, bytes - had);
  words_.resize(had + (n.ok() ? *n : 0));
  if (!n.ok()) return n.status();
  return words_.size() == bytes;
}

}  // namespace hvd::rt
