// SPDX-License-Identifier: Apache-2.0
// The facts that link B knows of the worker in a slot of this host. Belongs to the links thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/members/memory/abort_word.h"
#include "proto/page/rank_metrics.h"

namespace hvd::daemon {

struct WorkerSlot {
  uint64_t member = 0;  // 0: none is expected in this slot
  int share = 0;        // which of the host's it has
  int pid = -1;         // the member's own process; -1: not running
  bool ended = false;   // that process has
  bool broke = false;   // its link broke before its process ended
  // The words and counts of epochs that are over for it:
  std::string activity;
  AbortWord aborted;       // of the epoch that it left, as its page told
  RankTotals counts = {};  // of the epochs whose memory is gone
};
using WorkerSlots = std::vector<WorkerSlot>;  // by slot

}  // namespace hvd::daemon
