// SPDX-License-Identifier: Apache-2.0
// A GPU as this process uses it: its primary context (which CUDA's own libraries and frameworks use
// too), streams of hvd's own, and events that are used again.
//
// Threads: any; whoever calls the driver for this device holds a Scope. The events' pool locks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "runtime/gpu/cuda_driver.h"

namespace hvd::rt {

class GpuDevice {
 public:
  // `driver` outlives it. `index` counts the GPUs that this process may see.
  static absl::StatusOr<std::unique_ptr<GpuDevice>> Open(const CudaDriver* driver, int index);
  // The work that was asked of the stream has ended before.
  ~GpuDevice();
  GpuDevice(const GpuDevice&) = delete;
  GpuDevice& operator=(const GpuDevice&) = delete;

  // The calling thread is in the device's context as long as this lives; before and after it is
  // where it was.
  class Scope {
   public:
    explicit Scope(const GpuDevice& device);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    const CudaFunctions& calls_;
  };

  const CudaDriver& driver() const { return driver_; }
  const CudaFunctions& calls() const { return driver_.calls(); }
  int index() const { return index_; }
  // A stream of the greatest priority that nobody else uses: it waits for the null stream no more
  // than others wait for it.
  CudaStream stream() const { return stream_; }
  // Another such one, for what goes to the host: what comes back never waits for it.
  CudaStream host_stream() const { return host_stream_; }
  // Another, for what ranks do together on their devices: NCCL's. They all ask for it in one order.
  CudaStream shared_stream() const { return shared_stream_; }
  // And one on which only news of the others travels: whoever listens is told by a host function.
  CudaStream news_stream() const { return news_stream_; }

  // Returns the GPU's UUID; a MIG instance has its own.
  absl::StatusOr<CudaUuid> Uuid() const;
  // Says what has gone wrong on the streams that only this process uses. Does not wait.
  absl::Status Check() const;
  // Nothing is under way there, or ever will be.
  bool is_idle() const;

  // An event of this device, back in the pool when this goes. A record in it is then nobody's any
  // more.
  class Event {
   public:
    Event() = default;
    Event(Event&& other) noexcept : device_(other.device_), event_(other.event_) {
      other.event_ = nullptr;
    }
    Event& operator=(Event&& other) noexcept;
    ~Event();

    // It stands for all that `stream` has been asked for. In a Scope.
    absl::Status Record(CudaStream stream);
    // `stream` goes on behind that. In a Scope.
    absl::Status MakeWait(CudaStream stream) const;
    // Whether that has happened. An error: the device is lost. In a Scope.
    absl::StatusOr<bool> HasPassed() const;
    // Blocks the calling thread until it has happened. In a Scope.
    absl::Status AwaitHere() const;
    bool valid() const { return event_ != nullptr; }
    CudaEvent handle() const { return event_; }

   private:
    friend class GpuDevice;
    Event(GpuDevice* device, CudaEvent event) : device_(device), event_(event) {}
    GpuDevice* device_ = nullptr;
    CudaEvent event_ = nullptr;
  };
  // In a Scope. Makes one where the pool is empty, so after the first use nothing is allocated.
  absl::StatusOr<Event> TakeEvent();

 private:
  GpuDevice(const CudaDriver* driver, int index) : driver_(*driver), index_(index) {}
  absl::Status Begin();
  void GiveEvent(CudaEvent event);

  const CudaDriver& driver_;
  const int index_;
  CudaDevice device_ = 0;
  CudaContext context_ = nullptr;
  CudaStream stream_ = nullptr, host_stream_ = nullptr;
  CudaStream shared_stream_ = nullptr, news_stream_ = nullptr;
  Mutex mutex_;
  std::vector<CudaEvent> pool_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd::rt
