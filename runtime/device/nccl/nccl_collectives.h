// SPDX-License-Identifier: Apache-2.0
// NCCL as collectives (runtime/collective/collectives.h), but that the tensors lie on a device, and
// a call returns when it is on the device's stream, in order. Each is one NCCL group.
//
// Threads: one at a time, in the device's Scope.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "runtime/collective/collectives.h"
#include "runtime/device/nccl/nccl_rules.h"
#include "runtime/gpu/communicator.h"

namespace hvd::rt {

struct NcclCollectivesParts {
  Communicator* communicator = nullptr;  // borrowed
  Communicator::Place place;
  CudaStream stream = nullptr;
  // Checks the epoch: an error ends a call that still waits for other ranks.
  std::function<absl::Status()> check;
};

class NcclCollectives final : public Collectives {
 public:
  explicit NcclCollectives(NcclCollectivesParts parts) : parts_(std::move(parts)) {}
  NcclCollectives(const NcclCollectives&) = delete;
  NcclCollectives& operator=(const NcclCollectives&) = delete;

  int rank() const override { return parts_.place.rank; }
  int size() const override { return parts_.place.ranks; }
  absl::Status Allreduce(const ReduceArgs& args) override;
  absl::Status ReduceScatter(const ReduceScatterArgs& args) override;
  absl::Status Allgather(const GatherArgs& args) override;
  absl::Status Alltoall(const AlltoallArgs& args) override;
  absl::Status Broadcast(const BroadcastArgs& args) override;
  // Nothing lies on a device.
  absl::Status Barrier() override;

  // Waits until NCCL has no more to do on the host.
  absl::Status AwaitReady();

 private:
  class Group;
  // How to reduce so.
  struct Reducing {
    NcclNumbers numbers;
    NcclOp op = kNcclSum;
  };
  template <class Args>
  absl::StatusOr<Reducing> PlanReduction(const Args& args);
  absl::StatusOr<NcclOp> ScaledSum(NcclType type, double scale);

  const NcclCollectivesParts parts_;
  // Ops that multiply first, made once each; by type and the scalar's bits.
  std::map<std::pair<int, uint64_t>, NcclOp> scaled_;
};

}  // namespace hvd::rt
