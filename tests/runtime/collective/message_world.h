// SPDX-License-Identifier: Apache-2.0
// Ranks as threads over a message transport. Each has its own event fd, as if on one host.
#pragma once

#include <memory>
#include <string>

#include "runtime/collective/message/message_collectives.h"
#include "tests/runtime/collective/host_world.h"
#include "tests/runtime/transport/transport_world.h"

namespace hvd::rt::test {

class MessageWorld : public World {
 public:
  MessageWorld(int size, TransportKind kind, std::string what,
               const MessageThresholds& thresholds = {})
      : size_(size), kind_(kind), what_(std::move(what)), thresholds_(thresholds) {}

  std::string name() const override {
    return std::to_string(size_) + " ranks over " + NameOf(kind_) + ", " + what_;
  }
  int size() const override { return size_; }
  std::string Run(const RankBody& body) override {
    memory_ = std::make_unique<HostMemory>(size_, true);
    TransportWorld transports(kind_, size_);
    std::vector<int> everyone(size_);
    for (int rank = 0; rank < size_; ++rank) everyone[rank] = rank;
    return RunRanks(size_, [&](int rank) -> std::string {
      auto transport = transports.Join(rank);
      if (!transport.ok()) return transport.status().ToString();
      Waiter waiter(memory_->page(), rank, memory_->event_fds(),
                    WaitPolicy::For(size_, UsableCores()));
      waiter.set_transport(transport->get());
      MessageCollectives ranks({&waiter, transport->get(), everyone, rank, 3}, thresholds_);
      std::string complaint = body(ranks);
      // Nobody's transport goes while another still needs it; a broken epoch has no such promise.
      if (complaint.empty()) (void)ranks.Barrier();
      transports.Leave();
      return complaint;
    });
  }
  void Abort(const char* cause) override {
    AbortEpoch(memory_->page(), cause, memory_->event_fds());
  }

 private:
  const int size_;
  const TransportKind kind_;
  const std::string what_;
  const MessageThresholds thresholds_;
  std::unique_ptr<HostMemory> memory_;
};

}  // namespace hvd::rt::test
