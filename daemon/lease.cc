#include "daemon/lease.h"

namespace hvd {
namespace {

constexpr size_t kMostUnechoed = 4096;  // 17 minutes of silence, long after any lease

}  // namespace

uint64_t BeatBook::Send(TimePoint now) {
  unechoed_.push_back({++last_, now});
  if (unechoed_.size() > kMostUnechoed) unechoed_.pop_front();
  return last_;
}

std::optional<TimePoint> BeatBook::Hear(uint64_t number, uint64_t echo) {
  if (number > heard_) heard_ = number;
  std::optional<TimePoint> sent;
  while (!unechoed_.empty() && unechoed_.front().number <= echo) {
    if (unechoed_.front().number == echo) sent = unechoed_.front().at;
    unechoed_.pop_front();
  }
  return sent;
}

}  // namespace hvd
