// SPDX-License-Identifier: Apache-2.0
// Another rank as this one sees it: the lanes between them and what they have for one another.
// Guarded by the transport's mutex.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/transport/tcp/lane.h"
#include "runtime/transport/tcp/mailbox.h"

namespace hvd::rt {

// The first lane carries small messages and all frames without a payload, the others large ones:
// a small message never waits behind a large one.
inline constexpr int kLanes = 3;

class Peer : public LaneOwner, private Outbox {
 public:
  // `name`: "rank 3 on host1", for messages. `unflushed`: those that have put something off.
  Peer(std::string name, const MailboxLimits& limits, Poller* poller,
       std::vector<Peer*>* unflushed);

  const std::string& name() const { return name_; }
  bool attached(int lane) const { return lanes_[lane]->attached(); }
  bool attached() const;
  // A connection that has been proven. `where`: its other end, for messages.
  void Attach(int lane, Socket socket, const std::string& where);

  void Post(const std::shared_ptr<Inbound>& receive);
  void Give(const std::shared_ptr<Outbound>& send);
  void Withdraw(const std::shared_ptr<Inbound>& receive);
  void Withdraw(const std::shared_ptr<Outbound>& send);
  // Sends what was put off.
  void Flush();
  // From now on everything with this peer fails with this.
  void Break(const absl::Status& why);
  void SayGoodbye();

  absl::StatusOr<Landing> OnFrame(const Frame& frame) override;
  void OnLanded(const Landing& landing) override { mailbox_.Landed(landing); }
  void OnBroken(Lane* lane, const absl::Status& why) override;

 private:
  void Put(const Frame& frame, const std::shared_ptr<Outbound>& message) override;
  Lane* LaneForLarge();
  void PutOff();
  void FlushLanes();

  const std::string name_;
  const MailboxLimits limits_;
  Poller* const poller_;
  std::vector<Peer*>* const unflushed_;
  std::string where_;
  Mailbox mailbox_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  absl::Status status_;
  bool left_ = false;     // it has said goodbye: what is pending stays so until the epoch ends
  bool put_off_ = false;  // is among the unflushed
};

}  // namespace hvd::rt
