// SPDX-License-Identifier: Apache-2.0
// Everything that an epoch brings and that is thrown away with it: memory, board, transport,
// collectives. One for all ranks of the job, and one for each process set, which borrows the first
// one's memory and transport and has a region and channels of its own.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/engine/agreement/board.h"
#include "runtime/engine/agreement/leader.h"
#include "runtime/engine/direct/direct.h"
#include "runtime/engine/world/end_told.h"
#include "runtime/engine/world/join_options.h"
#include "runtime/engine/world/pair_links.h"
#include "runtime/engine/world/set_collectives.h"
#include "runtime/engine/world/set_memory.h"
#include "runtime/session/host_arenas.h"
#include "runtime/session/session.h"
#include "runtime/transport/waiter.h"

namespace hvd::rt {

class EpochWorld : public SetSeat {
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

  uint64_t epoch() const { return job().grant_.epoch; }
  // The state of an elastic job's epoch; the files go to the caller.
  const StateWords& state_words() const { return job().grant_.state; }
  std::vector<Descriptor> TakeStateFiles() { return std::move(grant_.state_files); }
  HostPage* page() const { return job().grant_.memory->page(); }  // all sets' of the host
  const int* event_fds() const { return job().grant_.memory->event_fds(); }
  Board& board() { return *board_; }
  Direct* direct() { return direct_.get(); }  // null in a job of several hosts
  Waiter& waiter() { return *waiter_; }
  Collectives& collectives() { return collectives_.all(); }
  SetCollectives& set_collectives() { return collectives_; }
  Leader* leader() { return leader_.get(); }  // null unless this rank speaks for its host
  Transport* transport() { return transport_.get(); }
  // The epoch has ended, and this rank has told the other hosts if it had to: from now on nothing
  // between hosts touches the users' memory. A set's world waits for the job's, whose leader tells
  // more.
  void LetGo();
  // Null without a launcher.
  const HostArenas* arenas() const { return job().arenas_.get(); }
  // Where hvdd looks at this rank in this set.
  WatchPlace watch() const { return {page(), in_job().place().local_rank, set().region, set().id}; }
  // For sends and receives.
  PairLinks pair_links() const;
  // Gives back a removed set's memory: its region's number may be another's. REQUIRES: no member on
  // this host uses it any more. One of them suffices: does nothing on the others.
  void GiveMemoryBack();

 private:
  EpochWorld(Topology topology, int rank, EpochWorld* job = nullptr, SetPlace set = {})
      : SetSeat(std::move(topology), rank, job, std::move(set)), job_(job), memory_(this) {}
  const EpochWorld& job() const { return job_ == nullptr ? *this : *job_; }
  absl::Status Meet(Session* session, const JoinOptions& options);
  void BuildAgreement();
  absl::Status BuildCollectives();

  // Destroyed in reverse order: what borrows goes first.
  EpochWorld* const job_;  // null in the global set's
  // Only the global set's world fills these three.
  EpochGrant grant_;
  uint32_t max_pending_ = 0;
  std::unique_ptr<HostArenas> arenas_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Waiter> waiter_;
  SetMemory memory_;
  std::unique_ptr<Direct> direct_;
  std::unique_ptr<Board> board_;
  SetCollectives collectives_;
  std::unique_ptr<Leader> leader_;
  EndTold told_;  // the global set's: its leader has told that the epoch has ended
};

}  // namespace hvd::rt
