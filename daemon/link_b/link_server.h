// SPDX-License-Identifier: Apache-2.0
// Link B's server: the thread ("hvdd-links") on which all that is said and done between hvdd and
// the workers of this host happens, so that an abort waits for nobody, and the calls by which other
// threads reach it. Connections, members' words and ends, epochs and what is watched in their
// memories are classes of their own.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "base/loop.h"
#include "daemon/connections/connections.h"
#include "daemon/connections/store_relay.h"
#include "daemon/link_b/member_ends.h"
#include "daemon/link_b/member_words.h"
#include "daemon/members/host_epochs.h"
#include "daemon/members/worker_slot.h"
#include "daemon/watch/pending_watch.h"
#include "daemon/watch/trace_watch.h"
#include "hvd/v1/link_a.pb.h"
#include "hvd/v1/link_b.pb.h"

namespace hvd::daemon {

struct LinkServerOptions {
  std::string host_name;  // as the job calls this host
  int slots = 0;
  bool elastic = false;  // members come and go, and slots are used again
  std::string job;
  std::string epoch_secret;
  Descriptor listener;                      // the way back; may be invalid
  std::function<void(v1::Event)> on_event;  // links thread
  StoreRelay* store = nullptr;              // gets the connections of the store's
  StallPolicy stall;
  bool timeline = false;  // the ranks record from the start
  TraceOutlet trace;
};

class LinkServer {
 public:
  explicit LinkServer(LinkServerOptions options);
  ~LinkServer();

  // All from any thread.
  // These slots are about to get these members.
  void Expect(const v1::SpawnSlots& spawn);
  void Propose(EpochPlan plan);
  void AddDoor(int slot, Descriptor door, std::string token);
  void MemberStarted(int slot, int pid);
  // `reply` gets it back with link B's word, on the links thread, after the abort that this causes.
  void MemberEnded(RankDeath death, std::function<void(const RankDeath&)> reply);
  // The worker of this slot is being ended; whoever waits for it is told `cause`.
  void Retire(int slot, std::string cause);
  // Elastic: it is in no later epoch, and is told so in these words when it asks for one.
  void Remove(int slot, std::string cause);
  // Elastic: an epoch's members are to change.
  void Change(const v1::EpochChange& change);
  void TableCame(v1::EpochTable table);
  void GoCame(uint64_t epoch);
  void Abort(uint64_t epoch, std::string cause);
  void Stop(std::string cause);
  // The job is to end, and nothing has failed: who is in a running epoch may finish there.
  void Close(std::string cause);
  // Begins or ends the recording of the timeline; `answer` goes to the member that asked for it.
  void SetTimeline(v1::SetTimeline set);
  // Tells what the ranks wait for, as an event.
  void AskPending();

 private:
  ConnectionHandlers Handlers();
  HostEpochsOptions EpochOptions();
  LinkParts Parts();
  int SlotOf(uint64_t member) const;
  int PidOf(int slot) const;
  void ExpectOne(const v1::Seat& seat);

  LinkServerOptions options_;
  Loop loop_;
  WorkerSlots workers_;
  Connections connections_;
  HostEpochs epochs_;
  TraceWatch traces_;
  PendingWatch pending_;
  MemberEnds ends_;
  MemberWords words_;
  std::thread thread_;
};

}  // namespace hvd::daemon
