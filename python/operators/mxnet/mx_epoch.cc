// SPDX-License-Identifier: Apache-2.0
#include "python/operators/mxnet/mx_epoch.h"

#include "python/operators/calls/calls_by_name.h"

namespace hvd::mx {

Epoch& Epoch::Get() {
  static auto* const one = new Epoch;
  return *one;
}

uint64_t Epoch::number(const std::shared_lock<std::shared_mutex>&) const { return number_; }

std::shared_lock<std::shared_mutex> Epoch::Hold() {
  return std::shared_lock<std::shared_mutex>(mutex_);
}

bool Epoch::SayLeaving() {
  if (leaving_ != 0) return true;
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.name = "hvd.mxnet is leaving";
  return hvd_is_initialized() == 1 && hvd_barrier_async(&options, &leaving_) == HVD_OK;
}

bool Epoch::MayEnd(int64_t microseconds) {
  const std::lock_guard lock(leaving_mutex_);
  if (!SayLeaving() || CallsByName::Get().AllHaveBegun()) return true;
  int32_t all = 0;
  return hvd_wait_for(leaving_, microseconds, &all) != HVD_OK || all == 1;
}

void Epoch::End() {
  {
    const std::lock_guard lock(leaving_mutex_);
    if (leaving_ != 0) (void)hvd_release(leaving_);
    leaving_ = 0;
  }
  const std::lock_guard lock(mutex_);
  ++number_;
}

}  // namespace hvd::mx
