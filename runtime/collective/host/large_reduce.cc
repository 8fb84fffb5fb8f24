// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/host/large_reduce.h"

#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <numeric>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/collective/host/peer_reads.h"
#include "runtime/collective/host/staged_reduce.h"

namespace hvd::rt {
namespace {

// Everyone's, by rank; nobody goes on before all have come.
template <class T>
absl::StatusOr<std::vector<T>> Exchange(HostGroup& group, const T& mine) {
  static_assert(sizeof(T) <= Arrival::kPayloadBytes);
  if (absl::Status begun = group.Begin(); !begun.ok()) return begun;
  group.Arrive({reinterpret_cast<const std::byte*>(&mine), sizeof(T)});
  if (absl::Status met = group.AwaitArrivals(); !met.ok()) return met;
  std::vector<T> all(group.size());
  for (int peer = 0; peer < group.size(); ++peer) {
    memcpy(&all[peer], peer == group.rank() ? static_cast<const void*>(&mine) : group.payload(peer),
           sizeof(T));
  }
  return all;
}

MemoryOffer OfferOf(const HostReduce& reduce, const uint64_t* token) {
  if (reduce.tensors.parts().size() != 1) return {};
  const ReducePart& whole = reduce.tensors.parts().front();
  return OfferMemory(whole.input, whole.output, token);
}

// Whether all ranks can read all the others' tensors.
absl::StatusOr<bool> AllCanRead(HostGroup& group, const std::vector<MemoryOffer>& offers,
                                size_t bytes) {
  int unread = 0;
  for (int peer = 0; peer < group.size(); ++peer) {
    if (peer != group.rank() && !CanRead(offers[peer], bytes)) ++unread;
  }
  const auto all = Exchange(group, unread);
  if (!all.ok()) return all.status();
  return std::accumulate(all->begin(), all->end(), 0) == 0;
}

}  // namespace

LargeReduce::LargeReduce() {
  // Not std::random_device: it asks newer C libraries than hvd needs otherwise. Without the
  // kernel's number an address serves, which differs between processes too.
  if (getrandom(&token_, sizeof token_, 0) != sizeof token_) {
    token_ = reinterpret_cast<uintptr_t>(this);
  }
}

absl::Status LargeReduce::Run(HostGroup& group, const HostReduce& reduce,
                              const StagedOptions& staged, const PeerReadOptions& options) {
  const size_t bytes = reduce.bytes();
  if (options.least_bytes == 0 || bytes < options.least_bytes || refused_) {
    return StagedReduce(group, reduce, staged);
  }
  if (options.untried) return Try(group, reduce, staged, nullptr);
  WayTrial& trial = trials_[std::min<int>(kSizes, std::bit_width(bytes)) - 1];
  if (trial.decided() && trial.next() == Way::kStaged) return StagedReduce(group, reduce, staged);
  return Try(group, reduce, staged, &trial);
}

// `trial`: nothing when there is nothing to find out.
absl::Status LargeReduce::Try(HostGroup& group, const HostReduce& reduce,
                              const StagedOptions& staged, WayTrial* trial) {
  using Clock = std::chrono::steady_clock;
  const auto offers = Exchange(group, OfferOf(reduce, &token_));
  if (!offers.ok()) return offers.status();
  const bool in_one_piece = std::all_of(offers->begin(), offers->end(),
                                        [](const MemoryOffer& o) { return o.input != nullptr; });
  if (!in_one_piece) return StagedReduce(group, reduce, staged);
  const bool reads = trial == nullptr || trial->next() == Way::kPeerReads;
  if (reads) {
    const auto can = AllCanRead(group, *offers, reduce.bytes());
    if (!can.ok()) return can.status();
    refused_ = !*can;
    if (refused_) return StagedReduce(group, reduce, staged);
  }
  const Clock::time_point begin = Clock::now();
  absl::Status done =
      reads ? PeerReadReduce(group, reduce, *offers) : StagedReduce(group, reduce, staged);
  if (!done.ok()) return done;
  // Nobody leaves, and changes its tensor, while another may still read there.
  const auto times = Exchange<int64_t>(group, (Clock::now() - begin) / std::chrono::nanoseconds(1));
  if (!times.ok()) return times.status();
  if (trial != nullptr) trial->Add(*std::max_element(times->begin(), times->end()));
  return absl::OkStatus();
}

}  // namespace hvd::rt
