// SPDX-License-Identifier: Apache-2.0
// Which hosts are reached, on which of their shares members are started, and which hosts are let
// go. Pure.
#pragma once

#include <vector>

#include "cli/membership/epochs.h"
#include "cli/membership/roster.h"
#include "cli/membership/shares.h"
#include "cli/membership/staying.h"
#include "cli/membership/wants.h"

namespace hvd::cli {

class Places {
 public:
  // All of them outlive it.
  struct Parts {
    Roster* roster;
    const Epochs* epochs;
    Shares* shares;
    Staying* staying;
    Wants* wants;
  };
  // `stdin_rank`: as in RunOptions.
  Places(int stdin_rank, const Parts& parts) : stdin_rank_(stdin_rank), parts_(parts) {}

  void ReachAndSpawn(double now);
  // The next of a host that has the state is to be started there, when its share's time has come.
  bool WillSpawnAtState(double now) const;

 private:
  // A listed host, where members may be started.
  struct Place {
    const BookHost* listed = nullptr;
    int host = -1;  // -1: it is not reached
    int free = 0;   // members to be started there
    bool needed = false;
  };
  std::vector<Place> Find(double now) const;
  bool IsUsable(const Place& place, double now) const;
  int LivingAt(int host) const;
  void Spawn(const Place& place, double now);
  void AddSeat(const RosterMember& member, v1::SpawnSlots* spawn);
  void StopIdleHosts(const std::vector<Place>& places);
  bool IsIdle(int host, const std::vector<Place>& places) const;

  const int stdin_rank_;
  const Parts parts_;
};

}  // namespace hvd::cli
