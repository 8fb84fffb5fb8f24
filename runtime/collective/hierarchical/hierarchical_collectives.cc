// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/hierarchical/hierarchical_collectives.h"

#include <string>
#include <vector>

#include "runtime/collective/hierarchical/allreduce.h"
#include "runtime/collective/hierarchical/gather_broadcast.h"
#include "runtime/collective/hierarchical/reduce_scatter.h"
#include "runtime/collective/message/wide_reduction.h"
#include "runtime/transport/unreached.h"

namespace hvd::rt {

absl::StatusOr<std::unique_ptr<HierarchicalCollectives>> HierarchicalCollectives::Create(
    const HierarchicalOptions& options, const HierarchicalThresholds& thresholds) {
  const RankPlace& place = options.topology->place(options.rank);
  auto host = HostCollectives::Create({.waiter = options.waiter,
                                       .region = options.region,
                                       .local_rank = place.local_rank,
                                       .local_size = place.local_size},
                                      thresholds.host);
  if (!host.ok()) return host.status();
  return std::unique_ptr<HierarchicalCollectives>(
      new HierarchicalCollectives(options, thresholds, *std::move(host)));
}

absl::Status HierarchicalCollectives::Allreduce(const ReduceArgs& args) {
  if (one_host()) return rails_.host().Allreduce(args);
  return TravelsWide(args.op, args.dtype) ? ReduceWide(args, this) : AllreduceAcross(rails_, args);
}

absl::Status HierarchicalCollectives::ReduceScatter(const ReduceScatterArgs& args) {
  if (one_host()) return rails_.host().ReduceScatter(args);
  if (TravelsWide(args.op, args.dtype)) return ReduceWide(args, this);
  return rails_.order().ReduceScatter(args, [this](const ReduceScatterArgs& by_position) {
    return ReduceScatterAcross(rails_, by_position);
  });
}

absl::Status HierarchicalCollectives::Allgather(const GatherArgs& args) {
  if (one_host()) return rails_.host().Allgather(args);
  return rails_.order().Allgather(
      args, [this](const GatherArgs& by_position) { return AllgatherAcross(rails_, by_position); });
}

absl::Status HierarchicalCollectives::Alltoall(const AlltoallArgs& args) {
  if (one_host()) return rails_.host().Alltoall(args);
  return rails_.order().Alltoall(args, [this](const AlltoallArgs& by_position) {
    return AlltoallAcross(rails_, by_position);
  });
}

absl::Status HierarchicalCollectives::Broadcast(const BroadcastArgs& args) {
  if (one_host()) return rails_.host().Broadcast(args);
  BroadcastArgs by_position = args;
  by_position.root = rails_.order().position_of(args.root);
  return BroadcastAcross(rails_, by_position);
}

absl::Status HierarchicalCollectives::Barrier() {
  if (absl::Status come = rails_.host().Barrier(); !come.ok()) return come;
  if (one_host()) return absl::OkStatus();
  if (rails_.leads()) {
    if (absl::Status crossed = rails_.rail().Barrier(); !crossed.ok()) return crossed;
  }
  return rails_.host().Barrier();
}

namespace {

// Ranks, or hosts, up to which all meet: a connection takes some 100 us.
constexpr int kMostMet = 64;

// Decided by what all ranks know alike, so that both of a pair mean each other.
std::vector<int> WhomToMeet(const Rails& rails) {
  std::vector<int> peers;
  for (int member = 0; member < rails.size(); ++member) {
    const RankPlace& place = rails.topology().place(member);
    const bool shares_rail = place.local_rank == rails.place().local_rank && rails.on_rail();
    if (place.host == rails.place().host) continue;
    if (rails.size() <= kMostMet || (rails.hosts() <= kMostMet && shares_rail))
      peers.push_back(member);
  }
  return peers;
}

// Until the connections that peers asked for are made.
absl::Status AwaitSettled(Waiter* waiter, Transport* transport) {
  const auto settling = transport->Settle();
  const auto ends = [waiter](const absl::Status& why) {
    return waiter->EndEpoch(std::string(why.message()), UnreachedBy(why));
  };
  if (!settling.ok()) return ends(settling.status());
  if (*settling == nullptr) return absl::OkStatus();
  absl::Status settled;
  absl::Status waited = waiter->Until([&] {
    const absl::StatusOr<bool> done = (*settling)->Test();
    settled = done.status();
    return !done.ok() || *done;
  });
  if (!waited.ok() || settled.ok()) return waited;
  return ends(settled);
}

}  // namespace

absl::Status HierarchicalCollectives::MeetPeers() {
  const std::vector<int> peers = WhomToMeet(rails_);
  if (peers.empty() && !rails_.on_rail()) return absl::OkStatus();
  // More than can meet: the neighbours on the rail, by a ring.
  const int group = peers.empty() ? rails_.hosts() : rails_.size();
  const std::vector<size_t> one_byte(static_cast<size_t>(group), 1);
  const std::vector<std::byte> mine(one_byte.size());
  std::vector<std::byte> theirs(one_byte.size());
  absl::Status met;
  if (peers.empty()) {
    met = rails_.rail().Allgather(
        {.input = mine.data(), .output = theirs.data(), .bytes_by_rank = one_byte});
  } else {
    const AlltoallArgs args{mine.data(), theirs.data(), one_byte, one_byte};
    auto run = rails_.everyone().StartAlltoall(args, peers);
    met = run.ok() ? Finish(rails_.waiter(), run->get()) : run.status();
  }
  return met.ok() ? AwaitSettled(rails_.waiter(), transport_) : met;
}

}  // namespace hvd::rt
