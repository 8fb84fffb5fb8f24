// SPDX-License-Identifier: Apache-2.0
// The facts on each local rank, gathered from three sides: the shim (its process), the relay (its
// output) and link B (its epoch). A rank's end is told when all three have spoken. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "proto/page/rank_metrics.h"
#include "proto/page/state_box.h"

namespace hvd {

// Why an epoch was aborted, as its ranks told one another.
struct AbortWord {
  std::string cause;   // empty: it was not
  int rank = -1;       // the rank whose doing it was (AbortCause); a worker's word
  int unreached = -1;  // as of AbortCause; a worker's word
};

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
