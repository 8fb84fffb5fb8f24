// SPDX-License-Identifier: Apache-2.0
// Hosts between which nothing passes, epoch after epoch: one of them is left out. Pure.
#pragma once

#include "cli/membership/epochs.h"
#include "cli/membership/faults/bad_links.h"
#include "cli/membership/shares.h"

namespace hvd::cli {

class LinkJudge {
 public:
  // Both outlive it.
  LinkJudge(Epochs* epochs, Shares* shares, const Roster* roster)
      : epochs_(epochs), shares_(shares), roster_(roster) {}

  // The newest epoch is over for everybody. True: links had failed in it, and hosts may be left
  // out.
  bool Judge();

 private:
  void ForgetCut();
  int SideToLeaveOut(int one, int other) const;

  Epochs* const epochs_;
  Shares* const shares_;
  const Roster* const roster_;
  BadLinks links_;
};

}  // namespace hvd::cli
