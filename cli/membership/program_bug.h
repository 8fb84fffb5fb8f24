// SPDX-License-Identifier: Apache-2.0
// Whether deaths are the program's own doing and not a host's: the same end without a new commit in
// between, where nothing but the program is the same. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hvd {

struct DeathSeen {
  std::string host;
  int share = 0;
  int code = 0;  // when signal is 0
  int signal = 0;
  bool out_of_memory = false;
  uint64_t epoch = 0;  // the newest that it was in
};

class ProgramBug {
 public:
  // `one_host`: the job has no other. `members`: so many are in the epoch of the death.
  // True: this death and an earlier one say that it is the program.
  bool Died(const DeathSeen& death, bool one_host, int members);
  // The job gets on.
  void Committed() { deaths_.clear(); }

 private:
  std::vector<DeathSeen> deaths_;  // since the newest commit
};

}  // namespace hvd
