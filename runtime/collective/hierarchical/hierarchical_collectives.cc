#include "runtime/collective/hierarchical/hierarchical_collectives.h"

#include "runtime/collective/hierarchical/allreduce.h"
#include "runtime/collective/hierarchical/gather_broadcast.h"
#include "runtime/collective/hierarchical/meeting.h"
#include "runtime/collective/hierarchical/reduce_scatter.h"
#include "runtime/collective/message/wide_reduction.h"

namespace hvd {

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

absl::Status HierarchicalCollectives::MeetPeers() { return hvd::MeetPeers(rails_, transport_); }

absl::Status HierarchicalCollectives::Allreduce(const ReduceArgs& args) {
  if (one_host()) return rails_.host().Allreduce(args);
  return TravelsWide(args.op, args.dtype) ? ReduceWide(args, this) : AllreduceAcross(rails_, args);
}

absl::Status HierarchicalCollectives::ReduceScatter(const ReduceScatterArgs& args) {
  if (one_host()) return rails_.host().ReduceScatter(args);
  return TravelsWide(args.op, args.dtype) ? ReduceWide(args, this)
                                          : ReduceScatterAcross(rails_, args);
}

absl::Status HierarchicalCollectives::Allgather(const GatherArgs& args) {
  return one_host() ? rails_.host().Allgather(args) : AllgatherAcross(rails_, args);
}

absl::Status HierarchicalCollectives::Alltoall(const AlltoallArgs& args) {
  return one_host() ? rails_.host().Alltoall(args) : AlltoallAcross(rails_, args);
}

absl::Status HierarchicalCollectives::Broadcast(const BroadcastArgs& args) {
  return one_host() ? rails_.host().Broadcast(args) : BroadcastAcross(rails_, args);
}

absl::Status HierarchicalCollectives::Barrier() {
  if (absl::Status come = rails_.host().Barrier(); !come.ok()) return come;
  if (one_host()) return absl::OkStatus();
  if (rails_.leads()) {
    if (absl::Status crossed = rails_.rail().Barrier(); !crossed.ok()) return crossed;
  }
  return rails_.host().Barrier();
}

}  // namespace hvd
