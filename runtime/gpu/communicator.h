// SPDX-License-Identifier: Apache-2.0
// The ranks of a process set as NCCL sees them, in one epoch. It is made without blocking: whoever
// makes it may see the epoch's end meanwhile, and so may whoever launches.
//
// Threads: one at a time makes, launches and ends it; Abort may come from another, once, when no
// other is inside NCCL with it.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/gpu/nccl_library.h"

namespace hvd::rt {

class Communicator {
 public:
  struct Place {
    int ranks = 1;
    int rank = 0;
    NcclId id = {};  // the same on all ranks; one of them has made it (MakeId)
  };
  static absl::StatusOr<NcclId> MakeId(const NcclLibrary& nccl);
  // Begins to meet the others, in the calling thread's device. `nccl` outlives it.
  static absl::StatusOr<std::unique_ptr<Communicator>> Start(const NcclLibrary* nccl,
                                                             const Place& place);
  // Aborts what has not been ended.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Whether nothing is under way inside NCCL: it has met all others, or has launched what was asked
  // for, or what BeginEnd began is done. An error: NCCL's, also one that came later than its call
  // (of the network, of another rank).
  absl::StatusOr<bool> IsReady() const;
  // Nothing more is launched here, and all work has ended on the device. Without blocking: End
  // follows when IsReady.
  absl::Status BeginEnd();
  absl::Status End();
  // Ends all that waits for others, on the device too; returns when the device has let go.
  void Abort();

  NcclCommunicator handle() const { return handle_; }
  const NcclLibrary& nccl() const { return nccl_; }

 private:
  explicit Communicator(const NcclLibrary* nccl) : nccl_(*nccl) {}

  const NcclLibrary& nccl_;
  NcclCommunicator handle_ = nullptr;  // null: it has ended
};

}  // namespace hvd::rt
