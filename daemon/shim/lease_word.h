// SPDX-License-Identifier: Apache-2.0
// When the shim must end everything: one word of memory that hvdd and its shim share, so that hvdd
// extends the shim's lease without waking it.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/loop.h"

namespace hvd::daemon {

class LeaseWord {
 public:
  // Before the fork. Without memory for it the process ends: nothing could be supervised.
  LeaseWord();
  ~LeaseWord();
  LeaseWord(const LeaseWord&) = delete;
  LeaseWord& operator=(const LeaseWord&) = delete;

  void Set(TimePoint until);
  TimePoint Get() const;

 private:
  std::atomic<int64_t>* word_;  // ns of CLOCK_MONOTONIC
};

}  // namespace hvd::daemon
