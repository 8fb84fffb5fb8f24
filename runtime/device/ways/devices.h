// SPDX-License-Identifier: Apache-2.0
// The GPUs of this process, and the two ways of tensors that lie on them: by NCCL, and by the
// host's memory.
//
// Threads: any; epochs begin and end one at a time.
#pragma once

#include <atomic>
#include <memory>

#include "base/mutex.h"
#include "runtime/device/gpus.h"
#include "runtime/device/nccl/nccl_process.h"
#include "runtime/device/staged/host_way.h"
#include "runtime/engine/tuning/config.h"
#include "runtime/session/arena.h"
#include "runtime/sets/process_sets.h"

namespace hvd::rt {

// Borrowed; they outlive it.
struct DevicesParts {
  ProcessSets* sets = nullptr;
  Arena* arena = nullptr;
  // Functions that give and free memory of gpus() for results, as hvd_free knows them.
  void* (*allocate_result)(int device, size_t bytes) = nullptr;
  void (*free_result)(void*) = nullptr;
};

// Lives as long as the process.
class Devices {
 public:
  explicit Devices(const DevicesParts& parts) : parts_(parts) {}
  Devices(const Devices&) = delete;
  Devices& operator=(const Devices&) = delete;

  Gpus& gpus() { return gpus_; }
  // Returns the way by the host; it is made at the first call, and stays.
  HostWay& host_way();
  // Null: there was no such call.
  HostWay* used_host_way() const { return used_host_way_.load(std::memory_order_acquire); }

  // A new epoch. `libhvd`: where it lies; NCCL may lie beside it.
  void BeginEpoch(const EngineConfig& config, const std::string& libhvd);
  // Makes the device work of a set's engine.
  SetDevice MakeWork(const EngineConfig& config, EpochWorld* set);
  // Ends what is under way by the host: this rank has left all its sets.
  void EndCalls();
  // After the last engine has gone.
  void EndEpoch();

 private:
  const DevicesParts parts_;
  Gpus gpus_;
  NcclProcess nccl_;
  Mutex host_way_mutex_;
  std::unique_ptr<HostWay> host_way_ ABSL_GUARDED_BY(host_way_mutex_);
  std::atomic<HostWay*> used_host_way_{nullptr};
};

}  // namespace hvd::rt
