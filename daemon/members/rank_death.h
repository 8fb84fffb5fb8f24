// SPDX-License-Identifier: Apache-2.0
// A rank's death as hvdd comes to know of it: how its process ended, by the shim; what that meant
// to its epoch, by link B; its last lines, by the relay. One value from the first word to the last.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/loop.h"
#include "daemon/members/link_facts.h"

namespace hvd::daemon {

struct RankDeath {
  int slot = 0;
  uint64_t member = 0;
  int pid = 0;     // 0: none was started
  TimePoint at;    // when hvdd heard of it
  int status = 0;  // as wait4 gives it
  bool out_of_memory = false;
  bool never_started = false;
  bool with_shim = false;  // the shim was lost, and this process with it
  std::string exec_error;
  LinkFacts link;
  std::vector<std::string> last_lines;

  int signal() const;     // 0: it has exited
  int exit_code() const;  // 0 where a signal ended it
  bool core_dumped() const;
  bool well() const;        // it ran, and ended with 0
  std::string how() const;  // "was killed by signal 9 (Killed)"
};

}  // namespace hvd::daemon
