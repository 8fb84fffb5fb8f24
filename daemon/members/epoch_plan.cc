// SPDX-License-Identifier: Apache-2.0
#include "daemon/members/epoch_plan.h"

#include <algorithm>

namespace hvd::daemon {

int EpochPlan::LocalRankOf(int slot) const {
  const auto found = std::find(slots.begin(), slots.end(), slot);
  return found == slots.end() ? -1 : static_cast<int>(found - slots.begin());
}

}  // namespace hvd::daemon
