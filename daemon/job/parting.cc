// SPDX-License-Identifier: Apache-2.0
#include "daemon/job/parting.h"

namespace hvd::daemon {

bool Parting::TakeLastWord(std::optional<int> survivors, bool all_told, bool files) {
  if (!survivors.has_value() || told_) return false;
  if (!all_told && *survivors == 0) return false;
  if (all_told && files) return false;
  told_ = true;
  return true;
}

Parting::Go Parting::MayGo(bool prepared) const {
  if (prepared && !told_) return Go::kNotYet;
  if (driver_gone_) return Go::kNow;
  return leaving_ || driver_silent_ ? Go::kSoon : Go::kNotYet;
}

}  // namespace hvd::daemon
