// SPDX-License-Identifier: Apache-2.0
// The epochs of this host: what happens in them is decided by the HostRendezvous and carried out
// before the call returns. The memories, the words and the files of state are classes of their own.
// Belongs to the links thread.
#pragma once

#include <functional>
#include <string>

#include "daemon/members/epoch_mail.h"
#include "daemon/members/host_memories.h"
#include "daemon/members/host_rendezvous.h"
#include "daemon/members/member_view.h"
#include "daemon/members/memory/state_box.h"
#include "daemon/members/worker_slot.h"
#include "hvd/v1/link_a.pb.h"
#include "hvd/v1/link_b.pb.h"

namespace hvd::daemon {

struct HostEpochsOptions {
  int slots = 0;
  bool elastic = false;
  std::string host_name;  // as the job calls this host
  EpochMailOptions mail;
  MemoryHandlers memories;
  std::function<void(const std::string& cause)> on_abort;  // an epoch of this host has been aborted
};

class HostEpochs {
 public:
  // `workers` outlives it; it reads the members and keeps there what outlives an epoch.
  HostEpochs(HostEpochsOptions options, WorkerSlots* workers);

  // What the driver says.
  void Propose(EpochPlan plan);
  // The members of the epoch are to change.
  void Change(uint64_t epoch);
  void TableCame(v1::EpochTable table);
  void GoCame(uint64_t epoch) { Carry(book_.GoCame(epoch)); }
  void Abort(uint64_t epoch, const std::string& cause) { Carry(book_.Abort(epoch, cause)); }
  void Stop(const std::string& cause) { Carry(book_.Stop(cause)); }
  void Close(const std::string& cause) { Carry(book_.Close(cause)); }
  void Remove(int slot, const std::string& cause) { Carry(book_.Remove(slot, cause)); }
  // Another member is to come to `slot`.
  void Reset(int slot) { book_.Reset(slot); }

  // What a member says.
  void Join(int slot);
  void Withdraw(int slot, uint64_t epoch) { Carry(book_.Withdraw(slot, epoch)); }
  // `arena` is invalid where the address brings none.
  void TakeAddress(int slot, const v1::Address& address, Descriptor arena);
  void Ready(int slot, uint64_t epoch) { Carry(book_.Ready(slot, epoch)); }
  void Leave(int slot, uint64_t epoch);

  // What becomes of a member, or of who speaks for it. `lives`: its process has not ended.
  void Gone(int slot, const std::string& cause, bool lives = false);
  // The same for one that went away in the midst of its epoch: what it did there is kept.
  void Broke(int slot, const std::string& cause, bool lives);
  void Abandon(int slot) { Carry(book_.Abandon(slot)); }
  void Back(int slot) { book_.Back(slot); }
  void StandsNoMore(int slot) { book_.StandsNoMore(slot); }

  const Attendance& book() const { return book_.attendance(); }
  const HostMemories& memories() const { return memories_; }
  const MemberView& members() const { return members_; }
  // Elastic: the commits that this host has complete.
  KeptCommits Kept() { return box_.Kept(); }

 private:
  void Carry(const EpochActions& actions);
  absl::Status CarryOne(const EpochAction& action);
  absl::Status Start(const EpochAction& action);
  void Tell(const EpochAction& action);
  void NoteLeft(const EpochAction& action);

  const HostEpochsOptions options_;
  WorkerSlots* const workers_;
  HostRendezvous book_;
  StateBox box_;
  HostMemories memories_;
  EpochMail mail_;
  MemberView members_;
};

}  // namespace hvd::daemon
