// Link B's server: claims, the rendezvous of this host's ranks and the abort of their epochs. Runs
// on a thread of its own ("hvdd-links"), so that an abort waits for nobody.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/loop.h"
#include "daemon/link_b/arena_box.h"
#include "daemon/link_b/epoch_memory.h"
#include "daemon/link_b/host_rendezvous.h"
#include "daemon/link_b/link_peer.h"
#include "daemon/link_b/store_relay.h"
#include "daemon/watch/progress_watch.h"
#include "daemon/watch/rank_table.h"
#include "daemon/watch/stall_watch.h"
#include "hostfile/topology.h"
#include "hvd/v1/link_a.pb.h"
#include "hvd/v1/link_b.pb.h"

namespace hvd {

struct LinkServerOptions {
  std::vector<HostShape> hosts;
  int host_index = 0;
  int first_rank = 0;
  int local_size = 0;
  std::string job;
  std::string epoch_secret;
  Descriptor listener;                      // the way back; may be invalid
  std::function<void(v1::Event)> on_event;  // links thread
  StoreRelay* store = nullptr;              // gets the connections of the store's
  StallPolicy stall;
  // The ranks' timelines on their way to the driver (links thread): how many bytes may be given
  // now, some frames, and that there will be no more.
  bool timeline = false;  // on from the start
  std::function<size_t()> trace_room;
  std::function<void(const std::string& frames)> on_trace;
  std::function<void()> on_trace_off;  // recording has ended; what was recorded has been given
  std::function<void()> on_trace_end;
};

// Behind the name of a process, or of the rank that it speaks for.
inline constexpr const char* kSentNoMessage = "sent hvdd what is no message of libhvd's";

class LinkServer {
 public:
  explicit LinkServer(LinkServerOptions options);
  ~LinkServer();

  // All from any thread.
  void AddDoor(int rank, Descriptor door, std::string token);
  void RankStarted(int rank, int pid);
  // The rank's own process has ended as `how` says ("was killed by signal 9 (Killed)"). `reply` is
  // called on the links thread, after the abort that this may cause.
  void RankEnded(int rank, std::string how, std::function<void(LinkFacts)> reply);
  void TableCame(v1::EpochTable table);
  void GoCame(uint64_t epoch);
  void Abort(uint64_t epoch, std::string cause);
  void Stop(std::string cause);
  // Begins or ends the recording of the timeline; `answer` goes to the rank that asked for it.
  void SetTimeline(v1::SetTimeline set);
  // Tells what the ranks wait for, as an event.
  void AskPending();

 private:
  struct Rank {
    Descriptor door;
    std::string token;
    int pid = -1;            // its own process; -1: not running
    int peer = -1;           // descriptor of the connection that speaks for it
    std::string activity;    // of epochs whose memory is gone
    AbortWord aborted;       // of the epoch that it left, as its page told
    RankTotals counts = {};  // of epochs whose memory is gone
    bool ended = false;
    bool broke = false;  // its link broke before its process ended
  };

  std::string Name(int rank) const;  // "rank 3 on host1"
  void OnDoor(int rank);
  void OnListener();
  void Adopt(Descriptor socket);
  void AwaitClaim(int fd);
  void LookForClaims();
  void NoLongerUnclaimed(int fd);
  void OnPeer(int fd, uint32_t events);
  // `how` a living process has lost its link: words behind the rank's name.
  void Close(int fd, const char* how = "closed its link to hvdd");
  // The same for one whose words are no libhvd's, or do not come.
  void TurnAway(const LinkPeer& peer, const char* how);
  void TellOfStranger(const LinkPeer& peer, const char* how);
  void Lost(int rank, const LinkPeer& peer, const char* how);
  void Broke(int rank, const std::string& how);
  void LostWorker(int rank, const LinkPeer& peer, std::optional<int> status);
  void TellBroke(int rank, v1::RankBroke broke);

  // What workers say (link_messages.cc).
  void Handle(LinkPeer* peer, const std::string& message);
  void TakeAddress(LinkPeer* peer, const v1::Address& address);
  int FindToken(const std::string& token) const;
  void NoteInitFailed(int rank, const std::string& why);
  void Claim(LinkPeer* peer, const std::string& token, uint32_t protocol,
             const std::string& version);
  void ClaimStore(LinkPeer* peer, const v1::StoreClaim& claim);
  void RefuseStore(LinkPeer* peer, const std::string& text);
  void Welcome(LinkPeer* peer);
  void Refuse(LinkPeer* peer, const std::string& message);

  // What the HostRendezvous decides (link_epochs.cc).
  void Carry(const EpochActions& actions);
  void TellLeft(const EpochAction& action);
  void Create(const EpochAction& action);
  void SendStart(const EpochAction& action);
  void SendTable(const EpochAction& action);
  void SendTo(int rank, const std::string& message, std::vector<int> fds = {},
              std::shared_ptr<const void> keep = nullptr);
  void WatchPeer(const LinkPeer& peer);
  void TellAddresses(uint64_t epoch);
  std::string ActivityOf(int rank) const;

  // What the host memories show (link_watch.cc).
  RankTotals CountsOf(int rank) const;
  void Forget(uint64_t epoch);
  void SwitchTracing(bool on);
  AbortWord AbortHeardBy(int rank) const;
  void LookAtTraces();
  bool TakeTraces(bool whatever_the_room);
  void NoteRankEnded(int rank);

  // Who waits for whom (link_stall.cc).
  void LookForStalls();
  // The newest epoch's, while it lives; else null.
  const EpochMemory* Watched() const;
  std::vector<RankProgress> Progress();
  int PidOf(int rank) const;
  std::string DoingOf(int rank) const;
  using OnAnswers = std::function<void(const std::vector<RankPending>& answers)>;
  void Ask(OnAnswers then);
  std::vector<RankPending> Answers(uint64_t epoch, uint32_t question);
  void TellPending(const std::vector<RankPending>& answers);
  void AddTensors(const std::vector<RankPending>& answers, v1::HostPending* host);
  void AddWork(v1::HostPending* host);
  void AddMessages(v1::HostPending* host) const;

  LinkServerOptions options_;
  Loop loop_;
  HostRendezvous book_;
  std::vector<Rank> ranks_;
  std::map<int, std::unique_ptr<LinkPeer>> peers_;  // by descriptor
  // Those of them that speak for no rank yet, the oldest first, and until when they may be silent.
  std::deque<std::pair<int, TimePoint>> unclaimed_;
  Loop::TimerId claim_timer_;
  bool told_of_stranger_ = false;
  std::map<uint64_t, std::shared_ptr<EpochMemory>> memories_;
  std::map<uint64_t, v1::EpochTable> tables_;
  std::map<uint64_t, std::shared_ptr<ArenaBox>> arenas_;  // of epochs whose table has not come
  StallWatch stalls_;
  ProgressWatch progress_;
  std::vector<int> silent_;  // local ranks that had something pending but did not answer last
  bool tracing_ = false;
  bool looking_ = false;  // a timer for LookAtTraces is set
  std::thread thread_;
};

}  // namespace hvd
