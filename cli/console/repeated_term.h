// SPDX-License-Identifier: Apache-2.0
// One stop that comes as several TERMs: a manager signals a process by itself, with its group, and
// with all that its job has started. Without a manager each TERM is a person's. Pure.
#pragma once

#include <limits>

namespace hvd::cli {

class RepeatedTerm {
 public:
  explicit RepeatedTerm(bool has_manager) : has_manager_(has_manager) {}

  // Whether the TERM of now is one with an earlier one, and doesn't count.
  bool Is(double now) {
    if (has_manager_ && now < first_s_ + kAtOnceS) return true;
    first_s_ = now;
    return false;
  }

 private:
  static constexpr double kAtOnceS = 1;

  bool has_manager_;
  double first_s_ = -std::numeric_limits<double>::infinity();  // of the last that counted
};

}  // namespace hvd::cli
