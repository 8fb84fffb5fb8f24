// SPDX-License-Identifier: Apache-2.0
// One epoch on this host: how far each of its members is in it, the addresses they have given, and
// whether it lives. A member is known by its slot. Pure: it keeps the order of the steps; what
// follows from them is the HostRendezvous' to decide.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "daemon/members/epoch_plan.h"

namespace hvd::daemon {

class LocalEpoch {
 public:
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

  explicit LocalEpoch(int slots) : stages_(slots, Stage::kOutside) {}

  // The driver's proposal; an abort may have come before it.
  void Propose(std::shared_ptr<const EpochPlan> plan);
  // Null: not proposed yet.
  const std::shared_ptr<const EpochPlan>& plan() const { return plan_; }
  // By local rank.
  const std::vector<std::string>& addresses() const { return addresses_; }

  // A step counts only when the member stands right before it; false: it does not.
  bool Withdraw(int slot) { return Move(slot, Stage::kJoined, Stage::kOutside); }
  bool Address(int slot, std::string address);
  bool Ready(int slot) { return Move(slot, Stage::kAddressed, Stage::kReady); }
  bool Go(int slot) { return Move(slot, Stage::kReady, Stage::kRunning); }
  // Returns whether it is the first: the epoch has had no memory before.
  bool Enter(int slot);
  // REQUIRES: it is inside. Returns whether it has run.
  bool Leave(int slot);
  // It takes no further part, without a word.
  void Abandon(int slot) { stages_[slot] = Stage::kGone; }
  // Another member has the slot now, and is none of this epoch's.
  void Reset(int slot) { stages_[slot] = Stage::kAbsent; }
  // The member is gone. `lives`: its process has not ended, and may write into what it has mapped.
  // False: that is nothing to this epoch.
  bool Lose(int slot, bool lives);

  // Notes what the ranks take of the memory at first. Returns whether nobody has said it before.
  bool Take(int slot, uint64_t bytes);
  // Returns how far what `slot` says differs from what the first one said; empty: not at all.
  std::string Conflict(int slot, uint64_t bytes) const;

  // Returns whether it has lived until now. REQUIRES: the cause has words.
  bool Abort(const std::string& cause);
  const std::string& cause() const { return cause_; }
  bool aborted() const { return !cause_.empty(); }
  // Has a memory: somebody has entered.
  bool created() const { return created_; }
  bool begun() const { return created_ || aborted(); }
  // Returns whether its quiet is to be told, which it is once.
  bool TakeQuiet();

  bool Lists(int slot) const { return stages_[slot] != Stage::kAbsent; }
  bool IsInside(int slot) const;
  // It is inside, and waits for an answer.
  bool IsWaiting(int slot) const;
  bool addressed(int slot) const { return stages_[slot] == Stage::kAddressed; }
  // All members of this host stand there.
  bool All(Stage stage) const;
  // No member is in it, nor will be.
  bool Unused() const;
  std::string NameOf(int slot) const;  // "rank 3"

 private:
  bool Move(int slot, Stage from, Stage to);

  std::shared_ptr<const EpochPlan> plan_;
  bool created_ = false;
  uint64_t bytes_ = 0;  // that the ranks take at first
  int first_to_say_ = -1;
  bool quiet_ = false;                  // as told
  std::string cause_;                   // of its abort; empty: it lives
  std::vector<Stage> stages_;           // by slot
  std::vector<std::string> addresses_;  // by local rank
};

}  // namespace hvd::daemon
