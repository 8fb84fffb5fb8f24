// SPDX-License-Identifier: Apache-2.0
// The rendezvous of one host's members, epoch by epoch: who has joined, given an address, is ready,
// has left or is gone. The driver proposes the epochs; a member gets the next that it is in. A
// member is known by its slot. Pure: what happened in, what to do out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hostfile/topology.h"

namespace hvd {

// Elastic: the driver's word on the state of an epoch's members (link A's EpochPropose).
struct EpochState {
  uint64_t resume_commit = 0;
  int root = -1;
  std::vector<int> needy;  // ranks
  bool rolls_back = false;
  int survivors = 0;
  bool is_void = false;  // of this host: what it has kept is of no use
};

// An epoch as its driver has proposed it, seen from one host.
struct EpochPlan {
  uint64_t epoch = 0;
  Topology topology;
  int host = -1;           // this one's place in the topology; -1: it has none
  std::vector<int> slots;  // its members' slots, in the order of their local ranks
  EpochState state = {};

  // -1: the member of that slot is not in it.
  int LocalRankOf(int slot) const;
  int RankOf(int local_rank) const { return topology.rank_at(host, local_rank); }
};

struct EpochAction {
  enum class Kind {
    kCreate,     // make the epoch's memory
    kStart,      // tell `slot`: here it is
    kStands,     // up: `slot` waits for an epoch that comes after `epoch`
    kWithdrawn,  // up: `slot` has taken its join back
    kTake,       // `bytes` of the memory are taken by all ranks of the host
    kAddresses,  // up: all addresses of the host (HostRendezvous::addresses)
    kTable,      // tell `slot` the table that came
    kReady,      // up: all of the host are ready
    kGo,         // tell `slot`
    kLeft,       // up: `slot` has left
    kAbort,      // mark the memory aborted with `text`
    kRefuse,     // tell `slot`, which waits for an answer, `text`
    kDispose,    // nobody uses the memory any more
    kQuiet,      // up, elastic: no member of this host is in the epoch any more, nor will be
    kRemove,     // tell `slot`, which waits for an answer, that it is in no later epoch: `text`
  };
  Kind kind;
  uint64_t epoch = 0;
  int slot = -1;
  uint64_t bytes = 0;
  std::string text = {};
};
using EpochActions = std::vector<EpochAction>;

class HostRendezvous {
 public:
  // `elastic`: members come and go, and slots are used again.
  explicit HostRendezvous(int slots, bool elastic = false);

  // The driver's proposals come in the order of their numbers.
  EpochActions Propose(EpochPlan plan);
  EpochActions Join(int slot);
  // `slot` has joined, has given no address, and takes its join back: it may join again later.
  EpochActions Withdraw(int slot, uint64_t epoch);
  // `bytes` of the host memory are what the rank's host takes at first.
  EpochActions Address(int slot, uint64_t epoch, std::string address, uint64_t bytes);
  EpochActions Ready(int slot, uint64_t epoch);
  EpochActions Leave(int slot, uint64_t epoch);
  // `slot` will take no further part in any epoch that it has not left. Elastic, `lives`: its
  // process has not ended, and may write into what it has mapped: its epochs are not quiet yet.
  EpochActions Gone(int slot, const std::string& cause, bool lives = false);
  // `slot` has left its aborted epoch without a word; it may come to the next.
  EpochActions Abandon(int slot);
  // Elastic: the member in `slot` is in no later epoch.
  EpochActions Remove(int slot, const std::string& cause);
  // Elastic: another member is to come to `slot`. REQUIRES: the one before is gone.
  void Reset(int slot);
  // Nobody speaks for `slot`, which waits for no epoch any more.
  void StandsNoMore(int slot) { standing_[slot] = false; }
  // A new process speaks for `slot`.
  void Back(int slot) { gone_[slot].clear(); }

  EpochActions TableCame(uint64_t epoch);
  EpochActions GoCame(uint64_t epoch);
  // 0: whichever is current. Ranks that join it later are refused with the same cause.
  EpochActions Abort(uint64_t epoch, const std::string& cause);
  // Aborts all, and every epoch to come.
  EpochActions Stop(const std::string& cause);
  // No epoch begins any more. One that all members of this host run goes on, until one is gone.
  EpochActions Close(const std::string& cause);

  // By local rank.
  const std::vector<std::string>& addresses(uint64_t epoch) { return epochs_[epoch].addresses; }
  // Null: it has not been proposed, or is over.
  const EpochPlan* plan(uint64_t epoch) const;
  // The newest proposal that the member of the slot is in: which rank it is, or will be. Null
  // before the first.
  const EpochPlan* newest_plan(int slot) const;
  bool in_epoch(int slot) const;
  // … that has not been aborted.
  bool in_live_epoch(int slot) const;
  // Its address has been taken, and not all are ready yet.
  bool addressed(int slot, uint64_t epoch) const;
  bool joined_ever(int slot) const { return last_epoch_[slot] != 0; }
  // The newest epoch of `slot`, 0: none; it left that one.
  uint64_t last_epoch(int slot) const { return last_epoch_[slot]; }
  bool left(int slot) const { return last_epoch_[slot] != 0 && !in_epoch(slot) && !broke_[slot]; }
  // An abort or a stop had reached `slot`: of its newest epoch, or by a refused join. It knows
  // nothing of an epoch that it never asked for.
  bool after_abort(int slot) const;
  bool removed(int slot) const { return !removed_[slot].empty(); }
  // It asked for an epoch, or waited for its start, and was told that there will be none.
  bool refused(int slot) const { return refused_[slot]; }

 private:
  // kLost: gone, but its process lives.
  enum class Stage {
    kAbsent,
    kOutside,
    kJoined,
    kAddressed,
    kReady,
    kRunning,
    kLeft,
    kLost,
    kGone
  };
  struct Epoch {
    std::shared_ptr<const EpochPlan> plan;  // null: not proposed yet
    bool created = false;
    uint64_t bytes = 0;  // that the ranks take at first
    int first_to_say = -1;
    bool quiet = false;                  // as told
    std::string aborted;                 // cause; empty: lives
    std::vector<Stage> stages;           // by slot
    std::vector<std::string> addresses;  // by local rank
  };

  Epoch& At(uint64_t epoch);
  uint64_t NextFor(int slot) const;
  EpochActions Enter(int slot, uint64_t number);
  void AbortIfLacking(uint64_t number, EpochActions* actions);
  static std::string NameIn(const Epoch& epoch, int slot);  // "rank 3"
  static bool IsInside(Stage stage);
  bool All(const Epoch& epoch, Stage stage) const;
  EpochActions Move(int slot, uint64_t epoch, Stage from, Stage to);
  void AbortOne(uint64_t number, const std::string& cause, EpochActions* actions);
  void RefuseStanding(EpochActions* actions);
  std::string BehindStop(const std::string& cause) const;
  bool Unused(const Epoch& epoch) const;
  void DisposeIfUnused(uint64_t number, EpochActions* actions);
  void TellQuiet(uint64_t number, EpochActions* actions);
  uint64_t NewestOf(int slot) const { return std::max(last_epoch_[slot], refusing_[slot]); }
  void ForgetRefusing();

  const int slots_;
  const bool elastic_;
  std::map<uint64_t, Epoch> epochs_;
  std::map<int, std::shared_ptr<const EpochPlan>> newest_plans_;  // by slot
  std::vector<bool> standing_;                                    // by slot: waits for a proposal
  std::vector<uint64_t> last_epoch_;                              // by slot
  std::vector<uint64_t> epoch_before_;  // by slot: the one before the last
  std::vector<uint64_t> refusing_;      // by slot: the newest epoch that was over when it asked
  std::vector<std::string> gone_;       // by slot: why; empty: it is there
  std::vector<bool> broke_;             // by slot: went away inside an epoch
  std::vector<bool> refused_;           // by slot: of the newest epoch that it asked for
  std::vector<std::string> removed_;    // by slot: why; empty: it is not
  std::string stopped_;
};

}  // namespace hvd
