// SPDX-License-Identifier: Apache-2.0
// What one call asks of its device: copies to host memory behind the caller's streams, copies back,
// and the event behind these.
//
// Threads: hvd-gpu.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/device/caller_order.h"
#include "runtime/device/staged/staged_memory.h"
#include "runtime/device/staged/staged_parts.h"
#include "runtime/device/staged/staged_plan.h"

namespace hvd::rt {

class StagedCopies {
 public:
  // `memory` outlives it.
  StagedCopies(const StagedParts& parts, StagedMemory* memory, std::shared_ptr<CallerOrder> order)
      : parts_(parts), memory_(*memory), order_(std::move(order)) {}

  // Copies to host memory what the request brings; the driver pushes `arrived` then. False: it
  // brings nothing.
  absl::StatusOr<bool> Fetch(const StagedRequest& staged, StagedStep* arrived);
  // Copies back what has come of it, for the call's request `asked`.
  absl::Status Return(StagedRequest* staged, Request* asked);
  // Records an event behind all copies back, and behind what NCCL has launched of the `announced`;
  // the driver pushes `back` when all that has happened.
  absl::StatusOr<GpuDevice::Event> End(absl::Span<const std::unique_ptr<Request>> announced,
                                       StagedStep* back);

  // There was no memory for a result here. The first counts.
  void Refuse(const absl::Status& why) {
    if (refused_.ok()) refused_ = why;
  }
  const absl::Status& refused() const { return refused_; }

 private:
  // A result whose size was not known before.
  struct Result {
    const Request& asked;
    absl::Span<const int64_t> shape;
    int position = 0;
    void** owned = nullptr;  // where it is noted, if hvd gives its memory
  };
  absl::Status ReturnResults(StagedRequest* staged, Request* asked);
  absl::Status ReturnResult(const Result& result);
  absl::StatusOr<void*> MemoryFor(const Result& result, size_t bytes);
  absl::Status CopyBack(void* to, const std::byte* from, size_t bytes);

  const StagedParts parts_;
  StagedMemory& memory_;
  const std::shared_ptr<CallerOrder> order_;
  bool waited_in_ = false;    // the stream to the host, for the caller's
  bool waited_back_ = false;  // hvd's stream, for the caller's
  absl::Status refused_;
};

}  // namespace hvd::rt
