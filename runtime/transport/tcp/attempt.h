// SPDX-License-Identifier: Apache-2.0
// One address of a peer: connects to it, and proves the connection. When it may, and for how long,
// is its dialer's to say. Guarded by the transport's mutex.
#pragma once

#include <string>

#include "runtime/transport/tcp/address_list.h"
#include "runtime/transport/tcp/handshake.h"
#include "runtime/transport/tcp/poller.h"

namespace hvd::rt {

class Attempt;

// Hears what becomes of an attempt. Each call is the last thing that the attempt does before it
// returns to the poller.
class AttemptOwner {
 public:
  virtual ~AttemptOwner() = default;
  virtual void OnConnected(Attempt* attempt) = 0;
  // Somebody there speaks as a rank does, and is to be answered (Answer).
  virtual void OnChallenged(Attempt* attempt) = 0;
  virtual void OnProven(Attempt* attempt, Socket socket) = 0;
  virtual void OnAttemptFailed(Attempt* attempt, const absl::Status& why) = 0;
};

struct AttemptPlan {
  std::string secret;
  LaneName name;
  PeerAddress address;
};

class Attempt : public Watched {
 public:
  // The step that the attempt waits for. kRest: nothing is under way.
  enum class Phase { kRest, kConnection, kChallenge, kMayAnswer, kConfirmation };

  Attempt(AttemptPlan plan, Poller* poller, AttemptOwner* owner)
      : plan_(std::move(plan)), poller_(poller), owner_(owner) {}
  ~Attempt() override { poller_->Close(&socket_); }

  // An error: it has failed, and is to rest.
  absl::Status Begin();   // REQUIRES: it rests
  absl::Status Answer();  // REQUIRES: it may
  void Rest();

  Phase phase() const { return phase_; }
  const PeerAddress& address() const { return plan_.address; }
  // Which address of this host it called from, in figures; empty: there was no way at all.
  const std::string& from() const { return from_; }
  void OnReady(uint32_t events) override;

 private:
  absl::Status Hear();
  absl::StatusOr<bool> Read(size_t bytes);  // true: words_ has as many

  const AttemptPlan plan_;
  Poller* const poller_;
  AttemptOwner* const owner_;
  Phase phase_ = Phase::kRest;
  Socket socket_;
  std::string from_;
  std::string words_;  // what has come of the peer's next words
  std::string challenge_, answer_;
};

}  // namespace hvd::rt
