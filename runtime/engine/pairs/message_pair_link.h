// SPDX-License-Identifier: Apache-2.0
// Two ranks of different hosts: notices and parcels are messages of the set's transport.
#pragma once

#include <deque>
#include <list>
#include <memory>

#include "runtime/engine/pairs/pair_link.h"
#include "runtime/transport/transport.h"

namespace hvd::rt {

struct MessagePairPlace {
  Transport* transport = nullptr;  // borrowed
  int peer = 0;
  uint16_t channel = 0;
  int32_t set = 0;  // the process set's number
};

class MessagePairLink : public PairLink {
 public:
  explicit MessagePairLink(const MessagePairPlace& place) : place_(place) {}

  absl::StatusOr<bool> Send(const PairNotice& notice) override;
  uint64_t gone() const override { return gone_; }
  absl::StatusOr<bool> Receive(PairNotice* notice) override;
  absl::Status BeginSend(Parcel* parcel) override;
  absl::Status BeginReceive(Parcel* parcel) override;
  absl::StatusOr<bool> Step(std::vector<Parcel*>* done) override;

 private:
  static constexpr size_t kMostNotices = 64;  // on their way at one time
  struct Leaving {
    std::unique_ptr<PairNotice> notice;
    std::unique_ptr<TransportRequest> request;
  };
  struct Moving {
    Parcel* parcel = nullptr;
    std::unique_ptr<TransportRequest> request;
  };
  MessageTag TagOf(const Parcel& parcel) const;

  const MessagePairPlace place_;
  std::deque<Leaving> leaving_;
  uint64_t gone_ = 0;
  PairNotice next_;                             // of the peer
  std::unique_ptr<TransportRequest> awaiting_;  // of next_
  std::list<Moving> moving_;
  bool posted_ = false;  // something that the transport has not been progressed for yet
};

}  // namespace hvd::rt
