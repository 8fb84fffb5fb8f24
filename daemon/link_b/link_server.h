// SPDX-License-Identifier: Apache-2.0
// Link B's server: who may speak for a member, what its words are, and what its end means. The
// connections, the epochs and what is watched in their memories are classes of their own; all run
// on a thread of the server's ("hvdd-links"), so that an abort waits for nobody.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "base/loop.h"
#include "daemon/link_b/connections.h"
#include "daemon/link_b/host_epochs.h"
#include "daemon/link_b/pending_watch.h"
#include "daemon/link_b/store_relay.h"
#include "daemon/link_b/trace_watch.h"
#include "daemon/link_b/worker_slot.h"
#include "hvd/v1/link_a.pb.h"
#include "hvd/v1/link_b.pb.h"

namespace hvd {

// How a member's own process has ended.
struct MemberEnd {
  int slot = 0;
  std::string how;    // "was killed by signal 9 (Killed)"
  bool well = false;  // with code 0
};

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
  // `reply` is called on the links thread, after the abort that this may cause.
  void MemberEnded(MemberEnd end, std::function<void(LinkFacts)> reply);
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
  int SlotOf(uint64_t member) const;
  int PidOf(int slot) const;

  // The meaning of a process's end, or of its link's (link_server.cc).
  LinkFacts FactsOf(int slot);
  void ExpectOne(const v1::Seat& seat);
  void LookAtEnd();
  void End(const MemberEnd& end, const std::function<void(LinkFacts)>& reply);
  void OnLost(const LinkPeer& peer, const char* how);
  void Lost(const LinkPeer& peer, const char* how);
  void LostOutside(const LinkPeer& peer);
  void LostAfterAbort(const LinkPeer& peer, const char* how);
  void GaveUp(int slot, const char* how);
  void Broke(int slot, const std::string& how);
  void LostWorker(const LinkPeer& peer, std::optional<int> status);
  void DiedSomehow(int slot);
  void TellBroke(int slot, v1::RankBroke broke);

  // The messages of workers (link_messages.cc).
  void OnMessage(LinkPeer* peer, const std::string& bytes);
  void Handle(LinkPeer* peer, const v1::ToDaemon& message);
  void Claim(LinkPeer* peer, const v1::Claim& claim);
  void ClaimStore(LinkPeer* peer, const v1::StoreClaim& claim);
  int FindToken(const std::string& token) const;
  void TakeAddress(LinkPeer* peer, const v1::Address& address);
  void NoteInitFailed(int slot, const std::string& why);
  void AskTimeline(int slot, const std::string& path);
  void AskGrace(int slot, uint64_t milliseconds);
  void Refuse(LinkPeer* peer, const std::string& text);

  LinkServerOptions options_;
  Loop loop_;
  WorkerSlots workers_;
  Connections connections_;
  HostEpochs epochs_;
  TraceWatch traces_;
  PendingWatch pending_;
  bool traces_ended_ = false;
  bool closing_ = false;  // no member is to come any more: by a stop, or by one that has ended well
  std::thread thread_;
};

}  // namespace hvd
