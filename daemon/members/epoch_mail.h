// SPDX-License-Identifier: Apache-2.0
// The words on this host's epochs: to the members, with the descriptors that go along, and up to
// the driver. It holds what is on its way: a table that came, arenas until everyone has them.
// Belongs to the links thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/connections/slot_message.h"
#include "daemon/members/epoch_action.h"
#include "daemon/members/local_epoch.h"
#include "daemon/members/memory/arena_box.h"
#include "daemon/members/memory/epoch_memory.h"
#include "daemon/members/worker_slot.h"
#include "hvd/v1/link_a.pb.h"
#include "hvd/v1/link_b.pb.h"
#include "proto/page/state_box.h"

namespace hvd::daemon {

struct EpochMailOptions {
  std::string epoch_secret;
  std::function<void(v1::Event)> on_event;
  std::function<void(int slot, SlotMessage message)> send;
};

// What a member gets of its epoch when it enters.
struct EpochGoods {
  std::shared_ptr<EpochMemory> memory;
  bool elastic = false;
  std::vector<int> state_files = {};  // elastic
};

class EpochMail {
 public:
  // `workers` outlives it; it reads the members.
  EpochMail(EpochMailOptions options, const WorkerSlots* workers)
      : options_(std::move(options)), workers_(workers) {}

  void SendStart(int slot, const EpochPlan& plan, const EpochGoods& goods);
  // An arena of the member's, which all of the host get with the table.
  void KeepArena(int slot, const EpochPlan& plan, Descriptor arena, uint64_t bytes);
  void KeepTable(v1::EpochTable table);
  void SendTable(int slot, const EpochPlan& plan);
  // The table is under way, or nobody waits for it any more; its arenas likewise.
  void DropTable(uint64_t epoch) { tables_.erase(epoch); }
  void DropArenas(uint64_t epoch) { arenas_.erase(epoch); }
  void SendGo(const EpochAction& action);
  void SendRefusal(const EpochAction& action);

  void TellJoined(const EpochAction& action);
  void TellStands(const EpochAction& action);
  void TellWithdrawn(const EpochAction& action);
  void TellAddresses(const LocalEpoch& epoch);
  void TellReady(uint64_t epoch);
  void TellLeft(const EpochAction& action, const AbortWord& aborted);
  void TellQuiet(uint64_t epoch, const KeptCommits& kept);

 private:
  void Send(int slot, const v1::ToWorker& message) {
    options_.send(slot, {message.SerializeAsString()});
  }
  uint64_t MemberOf(int slot) const { return (*workers_)[slot].member; }

  const EpochMailOptions options_;
  const WorkerSlots* const workers_;
  std::map<uint64_t, v1::EpochTable> tables_;
  std::map<uint64_t, std::shared_ptr<ArenaBox>> arenas_;  // of epochs whose table has not come
};

}  // namespace hvd::daemon
