// SPDX-License-Identifier: Apache-2.0
// Whether the kernel's out-of-memory killer has struck lately: the counter of the own memory cgroup
// where it can be read, else of the whole host. Best effort: it counts kills, it does not name
// them.
#pragma once

#include <cstdint>
#include <string>

namespace hvd::daemon {

class OomWatch {
 public:
  OomWatch();
  explicit OomWatch(std::string counter_file);

  // More kills than at the last call (or since the start).
  bool StruckSince();

 private:
  uint64_t Read() const;

  std::string file_;
  uint64_t seen_ = 0;
};

}  // namespace hvd::daemon
