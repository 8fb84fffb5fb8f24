// SPDX-License-Identifier: Apache-2.0
#include "daemon/job/lease.h"

#include "proto/deadlines.h"

namespace hvd::daemon {
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

void RenewedLease::Begin(Lease lease) {
  const MutexLock lock(&mutex_);
  lease_ = lease;
  if (!fixed_) word_->Set(lease_->until() + kShimLeaseMargin);
}

void RenewedLease::Renew(TimePoint echoed_beat_sent) {
  const MutexLock lock(&mutex_);
  if (!lease_.has_value()) return;
  lease_->Renew(echoed_beat_sent);
  if (!fixed_) word_->Set(lease_->until() + kShimLeaseMargin);
}

TimePoint RenewedLease::until() const {
  const MutexLock lock(&mutex_);
  return lease_.has_value() ? lease_->until() : TimePoint::max();
}

void RenewedLease::FixForShim(TimePoint until) {
  const MutexLock lock(&mutex_);
  fixed_ = true;
  word_->Set(until);
}

}  // namespace hvd::daemon
