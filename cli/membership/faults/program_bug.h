// SPDX-License-Identifier: Apache-2.0
// Whether deaths are the program's own doing and not a host's: the same end without progress in
// between, where nothing but the program is the same. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hvd::cli {

struct DeathSeen {
  std::string host;
  int share = 0;
  int code = 0;  // when signal is 0
  int signal = 0;
  bool out_of_memory = false;
  uint64_t epoch = 0;  // the newest that it was in
};

// Somebody else's doing: a person's, the batch system's.
bool ComesFromOutside(const DeathSeen& death);

class ProgramBug {
 public:
  // `members`: so many are in the epoch of the death, or are to be in the first one.
  // True: this death and earlier ones say that it is the program.
  bool Died(const DeathSeen& death, int members);
  // The job gets on.
  void GetsOn() { deaths_.clear(); }

 private:
  std::vector<DeathSeen> deaths_;  // since the job got on last
};

}  // namespace hvd::cli
