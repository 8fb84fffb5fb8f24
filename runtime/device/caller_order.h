// SPDX-License-Identifier: Apache-2.0
// What comes before a call on device tensors, and what comes after it: events on the caller's
// streams.
//
// Threads: one at a time.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/engine/request/request.h"
#include "runtime/gpu/gpu_device.h"

namespace hvd::rt {

// Unimplemented: `stream` is being captured into a graph, which cannot hold calls.
absl::Status CheckNotCaptured(const GpuDevice& device, CudaStream stream);

// All in the device's Scope, but the destructor.
class CallerOrder {
 public:
  explicit CallerOrder(std::shared_ptr<GpuDevice> device) : device_(std::move(device)) {}
  ~CallerOrder();
  CallerOrder(const CallerOrder&) = delete;
  CallerOrder& operator=(const CallerOrder&) = delete;

  // Notes what comes before a call with these requests: the work now on their streams, or what the
  // caller's own event holds. Unimplemented: a stream is being captured into a graph.
  absl::Status Note(absl::Span<const std::unique_ptr<Request>> requests);
  // Puts what is asked of `stream` from now on after that.
  absl::Status MakeWait(CudaStream stream) const;

  // Returns the streams of the caller's tensors, each once.
  const std::vector<void*>& streams() const { return streams_; }

 private:
  absl::Status NoteStream(void* stream);

  const std::shared_ptr<GpuDevice> device_;
  std::vector<void*> streams_;
  void* ready_event_ = nullptr;  // the caller's; then there are no others
  std::vector<GpuDevice::Event> ready_;
};

// The event that stands behind a call on its device: the caller's streams go on behind it. Shared
// by the requests that were launched together.
class LaunchedEnd {
 public:
  // In the device's Scope.
  LaunchedEnd(std::shared_ptr<GpuDevice> device, GpuDevice::Event event)
      : device_(std::move(device)), event_(std::move(event)) {}
  LaunchedEnd(const LaunchedEnd&) = delete;
  LaunchedEnd& operator=(const LaunchedEnd&) = delete;
  ~LaunchedEnd();

  const GpuDevice& device() const { return *device_; }
  const GpuDevice::Event& event() const { return event_; }

 private:
  const std::shared_ptr<GpuDevice> device_;
  GpuDevice::Event event_;
};

// That of a request that has been launched; null: it has not.
inline const LaunchedEnd* EndOf(const Request& request) { return request.result.device_end.get(); }

}  // namespace hvd::rt
