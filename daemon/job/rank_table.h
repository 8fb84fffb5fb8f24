// SPDX-License-Identifier: Apache-2.0
// The facts on each local rank, gathered from three sides: the shim (its process), the relay (its
// output) and link B (its epoch). A rank's end is told when all three have spoken. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/members/link_facts.h"

namespace hvd {

struct RankEnd {
  int slot = 0;
  int pid = 0;
  int exit_code = 0;
  int signal = 0;
  bool core_dumped = false;
  bool out_of_memory = false;
  std::string exec_error;
  std::vector<std::string> last_lines;
  LinkFacts link;
};

class RankTable {
 public:
  explicit RankTable(int local_size) : ranks_(local_size) {}

  // Another worker comes to the slot.
  void Reset(int slot) { ranks_[slot] = Rank(); }
  void Started(int slot, int pid) { ranks_[slot].end.pid = pid; }
  // `status` as wait4 gives it.
  void Exited(int slot, int status, bool out_of_memory);
  void NeverStarted(int slot, int exit_code, std::string why);
  void Drained(int slot, std::vector<std::string> last_lines);
  void LinkSpoke(int slot, LinkFacts facts);

  bool started(int slot) const { return ranks_[slot].end.pid != 0; }
  bool ended(int slot) const { return ranks_[slot].process_ended; }
  bool told(int slot) const { return ranks_[slot].taken; }  // its whole end
  // The rank's whole end, once, as soon as nothing is missing.
  std::optional<RankEnd> TakeEnd(int slot);

 private:
  struct Rank {
    RankEnd end;
    bool process_ended = false;
    bool drained = false;
    bool link_spoke = false;
    bool taken = false;
  };
  std::vector<Rank> ranks_;
};

}  // namespace hvd
