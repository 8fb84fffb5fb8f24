// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/host/host_group.h"

#include <cstring>

namespace hvd::rt {

template <class Done>
absl::Status HostGroup::Until(const Done& done) {
  absl::Status waited = waiter_->Until(done);
  if (waited.ok()) waiter_->NoteMove();
  return waited;
}

template <class Reached>
absl::Status HostGroup::AwaitPeers(const Reached& reached) {
  int next = 0;
  return Until([&] {
    while (next < size_ && (next == rank_ || reached(next))) ++next;
    return next == size_;
  });
}

HostGroup::HostGroup(const HostGroupOptions& options)
    : waiter_(options.waiter),
      region_(options.region, options.local_size),
      rank_(options.local_rank),
      size_(options.local_size) {}

absl::StatusOr<std::unique_ptr<HostGroup>> HostGroup::Create(const HostGroupOptions& options) {
  std::unique_ptr<HostGroup> group(new HostGroup(options));
  if (absl::Status begun = group->Begin(); !begun.ok()) return begun;
  group->Arrive({});
  if (absl::Status met = group->AwaitArrivals(); !met.ok()) return met;
  return group;
}

absl::Status HostGroup::Begin() {
  if (absl::Status alive = Check(); !alive.ok()) return alive;
  if (all_started_ < operation_) {
    absl::Status started = AwaitArrivals();
    if (!started.ok()) return started;
  }
  ++operation_;
  return absl::OkStatus();
}

void HostGroup::Arrive(absl::Span<const std::byte> payload) {
  Arrival& arrival = region_.flags(rank_).arrivals[operation_ % 2];
  if (!payload.empty()) memcpy(arrival.payload, payload.data(), payload.size());
  arrival.operation.store(operation_, std::memory_order_release);
  waiter_->Ring();
}

absl::Status HostGroup::AwaitArrival(int peer) {
  const std::atomic<uint64_t>& theirs = ArrivalOf(peer).operation;
  return Until([&] { return theirs.load(std::memory_order_acquire) >= operation_; });
}

absl::Status HostGroup::AwaitArrivals() {
  absl::Status all = AwaitPeers([&](int peer) {
    return ArrivalOf(peer).operation.load(std::memory_order_acquire) >= operation_;
  });
  if (all.ok()) all_started_ = operation_;
  return all;
}

std::atomic<uint64_t>& HostGroup::CounterOf(int peer, Counter counter) const {
  RankFlags& flags = region_.flags(peer);
  return counter == kStaged ? flags.staged : flags.done;
}

absl::Status HostGroup::AwaitStage(uint64_t round, uint64_t stages) {
  if (round < stages) return absl::OkStatus();
  const uint64_t reused = round - stages + 1;
  if (reused <= all_done_) return absl::OkStatus();
  absl::Status done = AwaitAll(kDone, reused);
  if (done.ok()) all_done_ = reused;
  return done;
}

void HostGroup::Advance(Counter counter, uint64_t rounds) {
  CounterOf(rank_, counter).store(rounds, std::memory_order_release);
  waiter_->Ring();
}

absl::Status HostGroup::Await(Counter counter, int peer, uint64_t rounds) {
  const std::atomic<uint64_t>& theirs = CounterOf(peer, counter);
  return Until([&] { return theirs.load(std::memory_order_acquire) >= rounds; });
}

absl::Status HostGroup::AwaitAll(Counter counter, uint64_t rounds) {
  return AwaitPeers(
      [&](int peer) { return CounterOf(peer, counter).load(std::memory_order_acquire) >= rounds; });
}

}  // namespace hvd::rt
