// Everything that an epoch brings and that is thrown away with it: memory, board, transport,
// collectives.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "hostfile/topology.h"
#include "runtime/collective/collectives.h"
#include "runtime/engine/board.h"
#include "runtime/engine/leader.h"
#include "runtime/session/session.h"
#include "runtime/transport/waiter.h"

namespace hvd {

class EpochWorld {
 public:
  // A rank of a launched job: joins the epoch after `after_epoch` and meets all others.
  // `host_cores`: what the host's ranks share; 0: count them.
  static absl::StatusOr<std::unique_ptr<EpochWorld>> Join(Session* session, uint64_t after_epoch,
                                                          int host_cores);
  // A job of one rank, without a launcher.
  static absl::StatusOr<std::unique_ptr<EpochWorld>> Alone();
  ~EpochWorld();

  const Topology& topology() const { return topology_; }
  const RankPlace& place() const { return topology_.place(rank_); }
  int rank() const { return rank_; }
  uint64_t epoch() const { return grant_.epoch; }
  HostPage* page() const { return grant_.memory->page(); }
  const int* event_fds() const { return grant_.memory->event_fds(); }
  Board& board() { return *board_; }
  Waiter& waiter() { return *waiter_; }
  Collectives& collectives() { return *collectives_; }
  Leader* leader() { return leader_.get(); }  // null unless this rank speaks for its host
  Transport* transport() { return transport_.get(); }
  RankActivity& activity() { return page()->activity[place().local_rank]; }

 private:
  EpochWorld(Topology topology, int rank) : topology_(std::move(topology)), rank_(rank) {}
  absl::Status Meet(Session* session, int host_cores);
  absl::Status BuildTransport();
  absl::Status BuildCollectives();

  // Destroyed in reverse order: what borrows goes first.
  const Topology topology_;
  const int rank_;
  EpochGrant grant_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Waiter> waiter_;
  std::unique_ptr<Board> board_;
  std::unique_ptr<Collectives> collectives_;
  std::unique_ptr<Leader> leader_;
};

}  // namespace hvd
