// SPDX-License-Identifier: Apache-2.0
// An operation of a MessageGroup in steps that never wait: a rank moves it along while it waits for
// something else (BackgroundWork), so that several overlap one another and the work in the host.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/collective/message/message_group.h"

namespace hvd::rt {

class MessageRun : public BackgroundWork {
 public:
  bool Step() final {
    if (finished()) return false;
    const absl::StatusOr<bool> moved = Advance();
    if (!moved.ok()) status_ = moved.status();
    return !moved.ok() || *moved;
  }
  bool finished() const { return !status_.ok() || IsComplete(); }
  const absl::Status& status() const { return status_; }

 protected:
  // True if something moved. Not called again after an error.
  virtual absl::StatusOr<bool> Advance() = 0;
  virtual bool IsComplete() const = 0;

 private:
  absl::Status status_;
};

// While it lives, every wait of the waiter steps the work.
class InBackground {
 public:
  InBackground(Waiter* waiter, BackgroundWork* work) : waiter_(waiter) {
    waiter_->set_background(work);
  }
  ~InBackground() { waiter_->set_background(nullptr); }
  InBackground(const InBackground&) = delete;
  InBackground& operator=(const InBackground&) = delete;

 private:
  Waiter* const waiter_;
};

// Waits for the run's end.
inline absl::Status Finish(Waiter* waiter, MessageRun* run) {
  absl::Status waited = waiter->Until([&] {
    while (run->Step()) {
    }
    return run->finished();
  });
  return run->status().ok() ? waited : run->status();
}

}  // namespace hvd::rt
