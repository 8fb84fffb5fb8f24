// SPDX-License-Identifier: Apache-2.0
// Makes a connection to a peer and proves it: tries the peer's addresses in turn, again and again
// for a while. Guarded by the transport's mutex.
#pragma once

#include <string>
#include <vector>

#include "runtime/transport/tcp/handshake.h"
#include "runtime/transport/tcp/poller.h"

namespace hvd {

struct DialPlan {
  std::string secret;
  LaneName name;
  std::vector<SocketAddress> addresses;  // at least one
  Clock::duration limit;                 // how long everything may fail before it is given up
  Clock::duration each{std::chrono::seconds(5)};  // for one address, while there are others
};

class Dialer;

class DialerOwner {
 public:
  virtual ~DialerOwner() = default;
  // Both are the last thing that a dialer does.
  virtual void OnDialed(Dialer* dialer, Socket socket, const std::string& where) = 0;
  virtual void OnDialFailed(Dialer* dialer, const std::string& why) = 0;
};

class Dialer : public Watched {
 public:
  Dialer(DialPlan plan, Poller* poller, DialerOwner* owner)
      : plan_(std::move(plan)), poller_(poller), owner_(owner) {}
  ~Dialer() override { poller_->Close(&socket_); }

  const LaneName& name() const { return plan_.name; }
  void OnReady(uint32_t events) override;
  // Does what is due, the first try too. The next time that something is: due().
  void OnTime(Clock::time_point now);
  Clock::time_point due() const { return due_; }

 private:
  // What is waited for.
  enum class Phase { kNextTry, kConnection, kChallenge, kConfirmation, kNothing };

  void Try(Clock::time_point now);
  absl::Status Step();
  absl::Status Answer();
  void TryFailed(const absl::Status& why);
  absl::StatusOr<bool> Read(size_t bytes);  // true: words_ has as many
  const SocketAddress& address() const { return plan_.addresses[at_ % plan_.addresses.size()]; }

  const DialPlan plan_;
  Poller* const poller_;
  DialerOwner* const owner_;
  Phase phase_ = Phase::kNextTry;
  Clock::time_point due_ = Clock::time_point::min();
  Clock::time_point tried_at_;
  Clock::time_point failing_since_ = Clock::time_point::max();
  Clock::duration pause_ = std::chrono::milliseconds(50);
  size_t at_ = 0;                  // tries so far
  std::vector<std::string> said_;  // by address: how its newest try ended
  Socket socket_;
  std::string words_;  // what has come of the peer's next words
  std::string challenge_, answer_;
};

}  // namespace hvd
