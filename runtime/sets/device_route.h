// SPDX-License-Identifier: Apache-2.0
// Which way the tensors on GPUs of a process set go in this epoch, as whoever submits them asks.
// The set's device work decides it, with the other ranks (runtime/device/nccl/).
//
// Threads: any.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "runtime/engine/engine.h"

namespace hvd::rt {

class DeviceRoute {
 public:
  enum class Way { kOpen, kHost, kNccl, kRefused };

  virtual ~DeviceRoute() = default;
  // It is decided once.
  virtual Way way() const = 0;
  // This rank brings nothing from now on. Returns the way that counts then; kOpen: the others are
  // about to decide.
  virtual Way CloseForJoin() = 0;
  // Where all tensors of the set lie, once it goes by NCCL. InvalidArgument: these do not.
  virtual absl::Status CheckDevice(const Request& request) const = 0;
};

// What executes a set's tensors on GPUs, for its engine, and the same as submitters see it: as long
// as the engine lives. Null: there is none.
struct SetDevice {
  std::unique_ptr<DeviceWork> work = nullptr;
  DeviceRoute* route = nullptr;
};

// An engine with that.
struct SetEngine {
  std::shared_ptr<Engine> engine;
  DeviceRoute* route = nullptr;
};

}  // namespace hvd::rt
