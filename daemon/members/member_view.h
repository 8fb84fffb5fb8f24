// SPDX-License-Identifier: Apache-2.0
// The members of this host as others are told of them: rank and name, what each does, what it has
// counted and heard. It reads what the attendance, the memories and the slots know, and changes
// none of it. Belongs to the links thread.
#pragma once

#include <string>
#include <utility>

#include "daemon/members/attendance.h"
#include "daemon/members/host_memories.h"
#include "daemon/members/link_facts.h"
#include "daemon/members/worker_slot.h"

namespace hvd::daemon {

struct MemberSources {
  std::string host_name;  // as the job calls this host
  bool elastic = false;
  const Attendance* attendance;
  const HostMemories* memories;
  const WorkerSlots* workers;
};

class MemberView {
 public:
  // The sources outlive it.
  explicit MemberView(MemberSources sources) : sources_(std::move(sources)) {}

  // Which rank the member of the slot is: in its newest epoch, else in the newest proposal.
  int RankOf(int slot) const;
  std::string Name(int slot) const;  // "rank 3 on host1"
  std::string ActivityOf(int slot) const;
  // Over all its epochs.
  RankTotals CountsOf(int slot) const;
  // Returns the page's word: ranks abort an epoch themselves, and those of another host are heard
  // there sooner than hvdrun by hvdd. A member that has left knows what was known then.
  AbortWord AbortHeardBy(int slot) const;
  // Whether what ended its epoch, if anything, was another's doing.
  bool AfterAbort(int slot) const;
  // Returns what link B knows of the member. Whether a process speaks for it, connections know.
  LinkFacts FactsOf(int slot) const;

 private:
  const WorkerSlot& worker(int slot) const { return (*sources_.workers)[slot]; }

  const MemberSources sources_;
};

}  // namespace hvd::daemon
