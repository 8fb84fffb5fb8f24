// SPDX-License-Identifier: Apache-2.0
// The facts on each local rank, gathered from three sides: the shim (its process), the relay (its
// output) and link B (its epoch). A rank's end is told when all three have spoken. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/members/rank_death.h"

namespace hvd::daemon {

class RankTable {
 public:
  explicit RankTable(int slots) : ranks_(slots) {}

  int slots() const { return static_cast<int>(ranks_.size()); }
  // A worker is to come to the slot, which nobody has, or whose worker's end has been told.
  void Expect(int slot, uint64_t member);
  void Started(int slot, int pid) { ranks_[slot].death.pid = pid; }
  // How the process came to its end. `end` says neither who it was nor what the other sides say.
  // Returns it with what is known by now.
  const RankDeath& Ended(RankDeath end);
  void Drained(int slot, std::vector<std::string> last_lines);
  void LinkSpoke(int slot, LinkFacts facts);

  uint64_t member(int slot) const { return ranks_[slot].death.member; }  // 0: none has come yet
  bool started(int slot) const { return ranks_[slot].death.pid != 0; }
  // Nobody runs in that slot.
  bool vacant(int slot) const { return member(slot) == 0 || ranks_[slot].process_ended; }
  bool told(int slot) const { return ranks_[slot].taken; }  // its whole end
  // The rank's whole end, once, as soon as nothing is missing.
  std::optional<RankDeath> TakeEnd(int slot);

 private:
  struct Rank {
    RankDeath death;
    bool process_ended = false;
    bool drained = false;
    bool link_spoke = false;
    bool taken = false;
  };
  std::vector<Rank> ranks_;  // by slot
};

}  // namespace hvd::daemon
