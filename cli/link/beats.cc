// SPDX-License-Identifier: Apache-2.0
#include "cli/link/beats.h"

#include <algorithm>

namespace hvd::cli {

uint64_t BeatLease::Send(double now) {
  sent_.push_back({next_, now});
  // A host silent for this long is given up anyway.
  if (sent_.size() > 100000) sent_.pop_front();
  return next_++;
}

std::optional<double> BeatLease::Hear(uint64_t number, uint64_t echo) {
  heard_ = std::max(heard_, number);
  std::optional<double> echoed;
  while (!sent_.empty() && sent_.front().number <= echo) {
    proven_ = std::max(proven_, sent_.front().at);
    if (sent_.front().number == echo) echoed = sent_.front().at;
    sent_.pop_front();
  }
  return echoed;
}

}  // namespace hvd::cli
