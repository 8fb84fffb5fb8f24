// SPDX-License-Identifier: Apache-2.0
// The job's transport as a process set sees it: ranks are numbered within the set, and the channels
// are its own.
#pragma once

#include <utility>
#include <vector>

#include "runtime/transport/transport.h"

namespace hvd::rt {

class SetTransport : public Transport {
 public:
  // `job` is borrowed. Channels are moved on by `first_channel`.
  SetTransport(Transport* job, std::vector<int> global_ranks, uint16_t first_channel)
      : job_(job), global_ranks_(std::move(global_ranks)), first_channel_(first_channel) {}

  absl::StatusOr<std::string> Address() override { return job_->Address(); }
  // The job's ranks are connected already.
  absl::Status Connect(const std::vector<std::string>&) override { return absl::OkStatus(); }
  absl::StatusOr<std::unique_ptr<TransportRequest>> Send(int peer, MessageTag tag, const void* data,
                                                         size_t bytes) override {
    return job_->Send(global_ranks_[peer], Moved(tag), data, bytes);
  }
  absl::StatusOr<std::unique_ptr<TransportRequest>> Receive(int peer, MessageTag tag, void* data,
                                                            size_t bytes) override {
    return job_->Receive(global_ranks_[peer], Moved(tag), data, bytes);
  }
  absl::StatusOr<std::unique_ptr<TransportRequest>> Settle() override { return job_->Settle(); }
  bool Progress() override { return job_->Progress(); }
  int EventFd() override { return job_->EventFd(); }
  bool Arm() override { return job_->Arm(); }

 private:
  MessageTag Moved(MessageTag tag) const {
    tag.channel = static_cast<uint16_t>(tag.channel + first_channel_);
    return tag;
  }

  Transport* const job_;
  const std::vector<int> global_ranks_;
  const uint16_t first_channel_;
};

}  // namespace hvd::rt
