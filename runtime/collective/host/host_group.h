// SPDX-License-Identifier: Apache-2.0
// The ranks of one host over their shared region: who has published what, and waiting for it. The
// ways through it (the room's README) are functions over this.
//
// Not thread-safe: one caller at a time, as Collectives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/collective/host/region.h"
#include "runtime/transport/waiter.h"

namespace hvd::rt {

struct HostGroupOptions {
  Waiter* waiter = nullptr;  // borrowed
  void* region = nullptr;    // zeroed, HostRegion::Bytes(local_size), the same memory on all ranks
  int local_rank = 0;
  int local_size = 1;
};

class HostGroup {
 public:
  // Cumulative rounds of the epoch. Staged: what this rank shows is there. Done: this rank is
  // through with what the others show; in a reduction its sums are there too. A round's stage may
  // be overwritten as many rounds later as there are stages, when every rank is done with it.
  enum Counter { kStaged, kDone };

  // Meets the other ranks; waits for all of them.
  static absl::StatusOr<std::unique_ptr<HostGroup>> Create(const HostGroupOptions& options);

  int rank() const { return rank_; }
  int size() const { return size_; }

  absl::Status Check() const { return waiter_->Check(); }
  // As Waiter::EndEpoch.
  absl::Status EndEpoch(const std::string& symptom) { return waiter_->EndEpoch(symptom); }
  // Starts the next operation: afterwards this rank may write its shelf and arrive.
  absl::Status Begin();
  // `payload`: at most Arrival::kPayloadBytes, for the peers; may be empty when the shelf has it.
  void Arrive(absl::Span<const std::byte> payload);
  absl::Status AwaitArrival(int peer);
  absl::Status AwaitArrivals();
  const std::byte* payload(int peer) const { return ArrivalOf(peer).payload; }
  std::byte* shelf(int peer) const { return region_.shelf(peer, operation_); }

  // Rounds: an operation takes `rounds` of them from first_round() on and adds them at its end.
  uint64_t first_round() const { return rounds_; }
  void AddRounds(uint64_t rounds) { rounds_ += rounds; }
  std::byte* reduce_stage(int peer, uint64_t round) const {
    return region_.reduce_stage(peer, round);
  }
  std::byte* copy_stage(int peer, uint64_t round) const { return region_.copy_stage(peer, round); }
  size_t stage_bytes() const { return HostRegion::StageBytes(size_); }
  // Waits until this rank may overwrite the stage of `round`.
  absl::Status AwaitReduceStage(uint64_t round) {
    return AwaitStage(round, HostRegion::kReduceStages);
  }
  absl::Status AwaitCopyStage(uint64_t round) { return AwaitStage(round, HostRegion::kCopyStages); }
  void Advance(Counter counter, uint64_t rounds);
  absl::Status Await(Counter counter, int peer, uint64_t rounds);
  absl::Status AwaitAll(Counter counter, uint64_t rounds);
  // fetch(peer) for every other rank, as soon as it is done with `rounds`; it returns a Status.
  template <class Fetch>
  absl::Status CollectDone(uint64_t rounds, const Fetch& fetch);

 private:
  explicit HostGroup(const HostGroupOptions& options);
  absl::Status AwaitStage(uint64_t round, uint64_t stages);
  const Arrival& ArrivalOf(int peer) const { return region_.flags(peer).arrivals[operation_ % 2]; }
  std::atomic<uint64_t>& CounterOf(int peer, Counter counter) const;
  // A wait of an operation: that it is over is seen from outside.
  template <class Done>
  absl::Status Until(const Done& done);
  // Waits until reached(peer) for all peers.
  template <class Reached>
  absl::Status AwaitPeers(const Reached& reached);

  Waiter* const waiter_;
  const HostRegion region_;
  const int rank_;
  const int size_;
  uint64_t operation_ = 0;
  uint64_t all_started_ = 0;  // the newest operation known to be started by every rank
  uint64_t all_done_ = 0;     // rounds known to be done by every rank
  uint64_t rounds_ = 0;
};

template <class Fetch>
absl::Status HostGroup::CollectDone(uint64_t rounds, const Fetch& fetch) {
  for (int i = 1; i < size_; ++i) {
    // Each starts with its right neighbour, so that not all wait for the same rank at once.
    const int peer = (rank_ + i) % size_;
    if (absl::Status done = Await(kDone, peer, rounds); !done.ok()) return done;
    if (absl::Status fetched = fetch(peer); !fetched.ok()) return fetched;
  }
  all_done_ = rounds;
  return absl::OkStatus();
}

}  // namespace hvd::rt
