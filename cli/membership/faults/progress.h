// SPDX-License-Identifier: Apache-2.0
// Whether a job gets on: its program has committed a step that it had not reached before. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>

namespace hvd::cli {

class Progress {
 public:
  // A commit is complete: the `steps`th of the program's own in the course of this state, at a
  // place that its integers and bytes tell from others (0: it is not known). True: the job gets on.
  bool Reached(uint64_t steps, uint64_t place) {
    const bool known = place != 0 && !places_.insert(place).second;
    const bool anew = known && steps <= most_ + kCommitsAnew;
    const bool reached = steps > most_ && !anew;
    most_ = std::max(most_, steps);
    return reached;
  }

 private:
  // A program that goes back may commit the place where it begins once more, and the one behind it:
  // more commits than ever are no progress then.
  static constexpr uint64_t kCommitsAnew = 2;

  uint64_t most_ = 0;
  std::set<uint64_t> places_;  // of the newest commits that epochs ended with
};

}  // namespace hvd::cli
