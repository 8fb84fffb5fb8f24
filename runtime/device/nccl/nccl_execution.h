// SPDX-License-Identifier: Apache-2.0
// Puts an agreed run on a communicator: by kind as on the host (runtime/engine/execution), and what
// a rank that has joined does for the others.
//
// Threads: one at a time, in the device's Scope.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/device/nccl/absent_memory.h"
#include "runtime/device/nccl/nccl_collectives.h"
#include "runtime/engine/execution/device_work.h"

namespace hvd::rt {

// Borrowed.
struct NcclExecutionParts {
  NcclCollectives* collectives = nullptr;  // for the tensors
  Collectives* sizes = nullptr;            // for sizes that only the ranks know, on the host
  AbsentMemory* absent = nullptr;
};

class NcclExecution {
 public:
  explicit NcclExecution(const NcclExecutionParts& parts) : parts_(parts) {}

  // An error of one request stands in its status. A returned error: this rank has not done its
  // part.
  absl::Status Execute(const DeviceRun& run);

 private:
  absl::Status ReduceFused(const DeviceRun& run);
  absl::StatusOr<std::vector<size_t>> ShareCounts(const LogEntry& entry,
                                                  const Request* request) const;
  absl::Status ExecuteAbsent(const LogEntry& entry);
  absl::Status DropGathered(const std::vector<size_t>& bytes_by_rank);

  const NcclExecutionParts parts_;
};

}  // namespace hvd::rt
