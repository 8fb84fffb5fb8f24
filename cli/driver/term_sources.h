// SPDX-License-Identifier: Apache-2.0
// TERM to hvdrun: a person signals the console, a manager all processes of a job at once. Pure.
#pragma once

#include <limits>

namespace hvd::cli {

// Tells the TERMs apart that mean one stop. A second one of the console's is the person's, who is
// in a hurry, and counts.
class TermSources {
 public:
  // Whether this is another one than what has been counted before.
  bool ByConsole(double now) {
    const bool same = now < helper_s_ + kSameS;
    helper_s_ = kNever;
    console_s_ = now;
    return !same;
  }
  // At the driver itself, or the spawner.
  bool ByHelper(double now) {
    const bool same = now < console_s_ + kSameS || now < helper_s_ + kSameS;
    if (!same) helper_s_ = now;
    return !same;
  }

 private:
  static constexpr double kSameS = 1;
  static constexpr double kNever = -std::numeric_limits<double>::infinity();

  double console_s_ = kNever;
  double helper_s_ = kNever;  // of the last that counted, until the console has had its own
};

}  // namespace hvd::cli
