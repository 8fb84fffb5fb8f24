#include "cli/driver_beats.h"

#include <algorithm>

namespace hvd {

uint64_t BeatLease::Send(double now) {
  sent_.push_back({next_, now});
  // A host silent for this long is given up anyway.
  if (sent_.size() > 100000) sent_.pop_front();
  return next_++;
}

void BeatLease::Hear(uint64_t number, uint64_t echo) {
  heard_ = std::max(heard_, number);
  while (!sent_.empty() && sent_.front().number <= echo) {
    proven_ = std::max(proven_, sent_.front().at);
    sent_.pop_front();
  }
}

}  // namespace hvd
