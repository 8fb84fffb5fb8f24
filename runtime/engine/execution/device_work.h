// SPDX-License-Identifier: Apache-2.0
// Executes what lies on a device: the seam between the engine and a device's library.
//
// Such work ends twice. It is *done* when it is on the device's stream: its waiters go on, since
// what they put on the stream comes after it. It has *finished* when the bytes are there.
#pragma once

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/engine/agreement/board/log_entry.h"

namespace hvd::rt {

// Entries of a batch that run as one.
struct DeviceRun {
  std::vector<const LogEntry*> entries;
  std::vector<Request*> requests;  // by entry; null: this rank has joined, and has not asked for it
};

// Is called when a run has finished: once, by any thread, with the engine's lock free; also before
// Launch has returned. An error ends the epoch: the ranks have lost one another on the device.
using DeviceEnd = std::function<void(const absl::Status& status)>;

// One a process set and epoch. All is the executor's.
class DeviceWork {
 public:
  // Afterwards nothing that was launched is told any more.
  virtual ~DeviceWork() = default;

  // Whether the device's library does this run: the same answer on all ranks, which it may ask. If
  // not, the engine only agrees on it, and whoever has submitted it does the rest. Errors: as
  // Launch's.
  virtual absl::StatusOr<bool> Takes(const DeviceRun& run) = 0;
  // Puts the run on the device's stream, and comes back without waiting for it. All is borrowed
  // until then. InvalidArgument: all ranks refuse it alike, and it has not been launched. Any other
  // error ends the epoch. After an error `ended` is not called.
  virtual absl::Status Launch(const DeviceRun& run, DeviceEnd ended) = 0;
  // Somebody waits for what has been launched to finish: its end is told as soon as can be.
  virtual void Hurry() = 0;
  // The epoch has ended, for `cause`. Returns when the device touches no memory of what was
  // launched any more; what is told of it from now on is not heard. Once; nothing is launched after
  // it. A Launch that still waits for other ranks must come back when the epoch ends: this call
  // comes only then.
  virtual void Abort(const absl::Status& cause) = 0;
};

}  // namespace hvd::rt
