// SPDX-License-Identifier: Apache-2.0
// What link B knows of a member when its process has ended. Plain values.
#pragma once

#include <cstdint>
#include <string>

#include "daemon/members/memory/abort_word.h"
#include "proto/page/rank_metrics.h"
#include "proto/page/state_box.h"

namespace hvd::daemon {

// Link B's word on a rank whose process has ended.
struct LinkFacts {
  uint64_t epoch = 0;  // its newest; 0: it never joined one
  bool joined = false;
  bool left = false;
  bool refused = false;  // asked for an epoch that it did not get
  bool after_abort = false;
  AbortWord aborted;        // of its newest epoch
  std::string cause;        // what the others of this host are told of its end
  bool spoken_for = false;  // a process behind it lives on and speaks for the rank
  std::string activity;
  RankTotals counts = {};  // of all its epochs
  KeptCommits kept = {};   // elastic: what this host has complete
};

}  // namespace hvd::daemon
