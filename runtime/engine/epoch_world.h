// SPDX-License-Identifier: Apache-2.0
// Everything that an epoch brings and that is thrown away with it: memory, board, transport,
// collectives. One for all ranks of the job, and one for each process set, which borrows the first
// one's memory and transport and has a region and channels of its own.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "hostfile/topology.h"
#include "runtime/collective/hierarchical/hierarchical_collectives.h"
#include "runtime/engine/agreement/board.h"
#include "runtime/engine/agreement/leader.h"
#include "runtime/engine/direct/direct.h"
#include "runtime/engine/pairs/host_pair_link.h"
#include "runtime/engine/set_transport.h"
#include "runtime/engine/tuning/terms.h"
#include "runtime/session/host_arenas.h"
#include "runtime/session/session.h"
#include "runtime/transport/waiter.h"

namespace hvd {

// The rank that needs a transport in a job of several hosts, and the epoch that it is for.
struct TransportPlace {
  int rank = 0;
  int size = 1;
  std::string token;  // the epoch's secret
};
using TransportFactory =
    std::function<absl::StatusOr<std::unique_ptr<Transport>>(const TransportPlace&)>;

struct JoinOptions {
  // Called as soon as this process knows which rank it is, before it meets the others; its error
  // ends the join.
  std::function<absl::Status(const Topology& topology, int rank)> on_start = nullptr;
  int host_cores = 0;                         // what the host's ranks share; 0: count them
  TransportFactory make_transport = nullptr;  // called in a job of several hosts
  Arena* arena = nullptr;        // the process's, shared with the host's ranks; null: none
  std::vector<Term> terms = {};  // the library's is added
  uint32_t max_pending = BoardPlace().most_pending;  // HVD_MAX_PENDING
};

// The most sets that all ranks know; the global set is one of them.
inline constexpr int kMaxProcessSets = 16;
// The most sets that only their members know, for each rank; and how far their channels go.
inline constexpr int kMaxMemberSets = kWatchedSets - kMaxProcessSets;
inline constexpr int kMaxChannels = 1365;

// A process set of which this rank is a member.
struct SetPlace {
  int region = 0;                 // which of the memory's, where hvdd looks; no other set's here
  std::vector<int> global_ranks;  // ascending
  int32_t id = 0;                 // as users know it
  // The members of a set that only they know have agreed on these; 0: follows from the region.
  int channels = 0;
  uint64_t memory_at = 0;  // on this host
};

class EpochWorld {
 public:
  // A rank of a launched job: joins the next epoch and meets all others.
  // FailedPrecondition, with the same words on all ranks, when their terms differ.
  static absl::StatusOr<std::unique_ptr<EpochWorld>> Join(Session* session,
                                                          const JoinOptions& options);
  // A job of one rank, without a launcher.
  static absl::StatusOr<std::unique_ptr<EpochWorld>> Alone(const JoinOptions& options = {});
  // A process set; all its members at once. `job` is borrowed and outlives it.
  static absl::StatusOr<std::unique_ptr<EpochWorld>> ForSet(EpochWorld* job, SetPlace place);
  // Memory on this host for a set of these ranks, when only its members know it:
  // SetPlace::memory_at.
  absl::StatusOr<uint64_t> TakeMemoryForSet(absl::Span<const int> global_ranks);
  ~EpochWorld();

  // All numbers are those within the set.
  const Topology& topology() const { return topology_; }
  const RankPlace& place() const { return topology_.place(rank_); }
  int rank() const { return rank_; }
  uint64_t epoch() const { return job().grant_.epoch; }
  // The state of an elastic job's epoch; the files go to the caller.
  const StateWords& state_words() const { return job().grant_.state; }
  std::vector<Descriptor> TakeStateFiles() { return std::move(grant_.state_files); }
  HostPage* page() const { return job().grant_.memory->page(); }  // all sets' of the host
  const int* event_fds() const { return job().grant_.memory->event_fds(); }
  Board& board() { return *board_; }
  Direct* direct() { return direct_.get(); }  // null in a job of several hosts
  Waiter& waiter() { return *waiter_; }
  Collectives& collectives() { return *collectives_; }
  // The collectives of a set on one host; else null.
  HostCollectives* on_host() { return on_host_; }
  void SetThresholds(const HierarchicalThresholds& thresholds);
  Leader* leader() { return leader_.get(); }  // null unless this rank speaks for its host
  Transport* transport() { return transport_.get(); }
  // The epoch has ended, and this rank has told the other hosts if it had to: from now on nothing
  // between hosts touches the users' memory. A set's world waits for the job's, whose leader tells
  // more.
  void LetGo();
  // Null without a launcher.
  const HostArenas* arenas() const { return job().arenas_.get(); }
  // The local rank in the whole job of a local rank of this set.
  int LocalRankInJob(int local_rank) const;
  // Where hvdd looks at this rank in this set.
  WatchPlace watch() const { return {page(), job().place().local_rank, set_.region, set_.id}; }
  RankActivity& activity() { return ActivityAt(watch()); }
  // Empty in the global set: all.
  const std::vector<int>& members() const { return set_.global_ranks; }
  // This rank's host, as the job counts them.
  int HostInJob() const { return job().place().host; }
  // The way to another rank of the set, for sends and receives; and whether there may be somebody
  // who has begun to use it.
  absl::StatusOr<std::unique_ptr<PairLink>> PairLinkTo(int rank);
  bool MayHavePairLink(int rank) const;
  // In the job, of a rank of this set.
  int GlobalRank(int rank) const {
    return members().empty() ? rank : members()[static_cast<size_t>(rank)];
  }
  // Gives back a removed set's memory: its region's number may be another's. REQUIRES: no member on
  // this host uses it any more. One of them suffices: does nothing on the others.
  void GiveMemoryBack();
  // Returns the bytes that the ranks of a host map at first: the page, and the part of the job's
  // own set.
  static size_t FirstBytes(const Topology& job, int host);

 private:
  EpochWorld(Topology topology, int rank, EpochWorld* job = nullptr, SetPlace set = {})
      : topology_(std::move(topology)), rank_(rank), job_(job), set_(std::move(set)) {}
  const EpochWorld& job() const { return job_ == nullptr ? *this : *job_; }
  absl::Status Meet(Session* session, const JoinOptions& options);
  absl::Status Connect(Session* session, const JoinOptions& options);
  absl::Status MapRegion();
  PairPlaces pair_places() const;
  void BuildAgreement();
  absl::Status BuildCollectives();
  absl::Status MakeCollectives();

  // Destroyed in reverse order: what borrows goes first.
  const Topology topology_;
  const int rank_;
  EpochWorld* const job_;  // null in the global set's
  const SetPlace set_;
  // Only the global set's world fills these three.
  EpochGrant grant_;
  uint32_t max_pending_ = 0;
  std::unique_ptr<HostArenas> arenas_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Waiter> waiter_;
  std::shared_ptr<std::byte> mapped_;  // of a set that is not the global one
  std::byte* region_ = nullptr;
  std::unique_ptr<Direct> direct_;
  std::unique_ptr<Board> board_;
  std::unique_ptr<Collectives> collectives_;
  HostCollectives* on_host_ = nullptr;               // what collectives_ is, on one host
  HierarchicalCollectives* across_hosts_ = nullptr;  // or on several
  std::unique_ptr<Leader> leader_;
  // In the global set's world: its leader has told that the epoch has ended.
  Mutex told_mutex_;
  Condition told_changed_;
  bool told_ ABSL_GUARDED_BY(told_mutex_) = false;
};

}  // namespace hvd
