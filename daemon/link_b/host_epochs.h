// SPDX-License-Identifier: Apache-2.0
// The epochs of this host: carries out what the HostRendezvous decides. Owns what an epoch has
// here: its memory, its arenas until everyone has them, its table on the way. Belongs to the links
// thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "daemon/link_b/arena_box.h"
#include "daemon/link_b/connections.h"
#include "daemon/link_b/epoch_memory.h"
#include "daemon/link_b/host_rendezvous.h"
#include "daemon/link_b/state_box.h"
#include "daemon/link_b/worker_slot.h"
#include "hvd/v1/link_a.pb.h"
#include "hvd/v1/link_b.pb.h"

namespace hvd {

struct HostEpochsOptions {
  int slots = 0;
  bool elastic = false;
  std::string host_name;  // as the job calls this host
  std::string epoch_secret;
  std::function<void(v1::Event)> on_event;
  std::function<void(int slot, SlotMessage message)> send;
  std::function<void(EpochMemory* memory)> on_create;
  std::function<void()> on_forget;                         // a memory goes: look at it now
  std::function<void(const std::string& cause)> on_abort;  // an epoch of this host has been aborted
};

class HostEpochs {
 public:
  // `workers` outlives it; it reads the members and keeps there what outlives an epoch.
  HostEpochs(HostEpochsOptions options, WorkerSlots* workers);

  // The events of an epoch; each is decided by the rendezvous and carried out before the call
  // returns.
  void Propose(EpochPlan plan);
  void Join(int slot);
  void Withdraw(int slot, uint64_t epoch) { Carry(book_.Withdraw(slot, epoch)); }
  // `arena` is invalid where the address brings none.
  void TakeAddress(int slot, const v1::Address& address, Descriptor arena);
  void Ready(int slot, uint64_t epoch) { Carry(book_.Ready(slot, epoch)); }
  void Leave(int slot, uint64_t epoch);
  // `lives`: its process has not ended.
  void Gone(int slot, const std::string& cause, bool lives = false) {
    Carry(book_.Gone(slot, cause, lives));
  }
  void Remove(int slot, const std::string& cause) { Carry(book_.Remove(slot, cause)); }
  // Another member is to come to `slot`.
  void Reset(int slot) { book_.Reset(slot); }
  // The members of the epoch are to change.
  void Change(uint64_t epoch);
  void Abandon(int slot) { Carry(book_.Abandon(slot)); }
  void Back(int slot) { book_.Back(slot); }
  void StandsNoMore(int slot) { book_.StandsNoMore(slot); }
  void TableCame(v1::EpochTable table);
  void GoCame(uint64_t epoch) { Carry(book_.GoCame(epoch)); }
  void Abort(uint64_t epoch, const std::string& cause) { Carry(book_.Abort(epoch, cause)); }
  void Stop(const std::string& cause) { Carry(book_.Stop(cause)); }
  void Close(const std::string& cause) { Carry(book_.Close(cause)); }

  const Attendance& book() const { return book_.attendance(); }
  const std::map<uint64_t, std::shared_ptr<EpochMemory>>& memories() const { return memories_; }

  // Which rank the member of the slot is: in its newest epoch, else in the newest proposal.
  int RankOf(int slot) const;
  std::string Name(int slot) const;  // "rank 3 on host1"
  std::string ActivityOf(int slot) const;
  // Over all its epochs.
  RankTotals CountsOf(int slot) const;
  // Returns the page's word: ranks abort an epoch themselves, and those of another host are heard
  // there sooner than hvdrun by hvdd. A member that has left knows what was known then.
  AbortWord AbortHeardBy(int slot) const;
  // Elastic: the commits that this host has complete.
  KeptCommits Kept() { return box_.Kept(); }
  // Before its memory may go.
  void KeepActivity(int slot) { (*workers_)[slot].activity = ActivityOf(slot); }

 private:
  void Carry(const EpochActions& actions);
  void CarryOne(const EpochAction& action);
  void Create(const EpochAction& action);
  void Start(const EpochAction& action);
  void SendStart(const EpochAction& action);
  void TellStands(const EpochAction& action);
  void TellWithdrawn(const EpochAction& action);
  void Take(const EpochAction& action);
  void TellAddresses(uint64_t epoch);
  void SendTable(const EpochAction& action);
  void TellReady(uint64_t epoch);
  void SendGo(const EpochAction& action);
  void TellLeft(const EpochAction& action);
  void MarkAborted(const EpochAction& action);
  void SendRefusal(const EpochAction& action);
  void TellQuiet(uint64_t epoch);
  absl::Status AddState(const EpochAction& action, v1::EpochStart* start, std::vector<int>* fds);
  void Forget(uint64_t epoch);
  void Send(int slot, const v1::ToWorker& message) {
    options_.send(slot, {message.SerializeAsString()});
  }
  uint64_t MemberOf(int slot) const { return (*workers_)[slot].member; }

  const HostEpochsOptions options_;
  WorkerSlots* const workers_;
  HostRendezvous book_;
  StateBox box_;
  std::set<uint64_t> changing_;  // epochs that were to change before they had a memory
  std::map<uint64_t, std::shared_ptr<EpochMemory>> memories_;
  std::map<uint64_t, v1::EpochTable> tables_;
  std::map<uint64_t, std::shared_ptr<ArenaBox>> arenas_;  // of epochs whose table has not come
};

}  // namespace hvd
