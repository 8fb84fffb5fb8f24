#include "runtime/collective/hierarchical/hierarchical_collectives.h"

#include <algorithm>

#include "runtime/collective/message/wide_reduction.h"
#include "runtime/collective/slices.h"

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

HierarchicalCollectives::HierarchicalCollectives(const HierarchicalOptions& options,
                                                 const HierarchicalThresholds& thresholds,
                                                 std::unique_ptr<HostCollectives> host)
    : topology_(*options.topology),
      place_(topology_.place(options.rank)),
      thresholds_(thresholds),
      waiter_(options.waiter),
      transport_(options.transport),
      host_(std::move(host)) {
  rails_ = topology_.hosts()[0].ranks;
  for (const HostShape& host_shape : topology_.hosts()) rails_ = std::min(rails_, host_shape.ranks);
  const auto global = [&](int member) {
    return options.global_ranks.empty() ? member : options.global_ranks[member];
  };
  MessageGroupOptions everyone;
  everyone.waiter = options.waiter;
  everyone.transport = options.transport;
  everyone.index = options.rank;
  everyone.channel = options.channel;
  everyone.lane = 1;
  for (int member = 0; member < size(); ++member) everyone.ranks.push_back(global(member));
  MessageGroupOptions rail = everyone;
  rail.index = place_.host;
  rail.lane = 0;  // rails share no rank
  rail.ranks.clear();
  for (int h = 0; h < hosts(); ++h) {
    rail.ranks.push_back(global(topology_.first_rank(h) + place_.local_rank));
  }
  all_ = std::make_unique<MessageCollectives>(std::move(everyone), thresholds.message);
  if (place_.local_rank >= rails_) return;
  rail_ = std::make_unique<MessageCollectives>(std::move(rail), thresholds.message);
}

std::vector<size_t> HierarchicalCollectives::RailBounds(size_t count) const {
  std::vector<size_t> bounds = EvenSlices(count, rails_);
  bounds.resize(place_.local_size + 1, count);
  return bounds;
}

std::vector<size_t> HierarchicalCollectives::BlockBounds(absl::Span<const size_t> by_rank) const {
  std::vector<size_t> bounds = {0};
  for (int h = 0; h < hosts(); ++h) {
    const auto ranks = by_rank.subspan(topology_.first_rank(h), topology_.hosts()[h].ranks);
    bounds.push_back(bounds.back() + SumAndLargest(ranks).first);
  }
  return bounds;
}

std::byte* HierarchicalCollectives::Room(size_t index, size_t bytes) {
  if (rooms_.size() <= index) rooms_.resize(index + 1);
  RoomMemory& room = rooms_[index];
  if (room.bytes < bytes) {
    room.memory.reset(new std::byte[bytes]);
    room.bytes = bytes;
  }
  return room.memory.get();
}

absl::Status HierarchicalCollectives::Allreduce(const ReduceArgs& args) {
  if (hosts() == 1) return host_->Allreduce(args);
  if (TravelsWide(args.op, args.dtype)) return ReduceWide(args, this);
  if (const auto known = ReductionOf(args, size()); !known.ok()) return known.status();
  const TensorView view(args);
  if (flat() && view.parts().size() == 1) return rail_->Allreduce(args);
  const size_t bytes = view.count() * view.element_bytes();
  return bytes < thresholds_.rails_bytes ? AllreduceOnFirstRail(args, view)
                                         : AllreduceOnRails(args, view);
}

absl::Status HierarchicalCollectives::Barrier() {
  if (absl::Status come = host_->Barrier(); !come.ok()) return come;
  if (hosts() == 1) return absl::OkStatus();
  if (leads()) {
    if (absl::Status crossed = rail_->Barrier(); !crossed.ok()) return crossed;
  }
  return host_->Barrier();
}

void HierarchicalCollectives::set_thresholds(const HierarchicalThresholds& thresholds) {
  thresholds_ = thresholds;
  host_->set_thresholds(thresholds.host);
  if (rail_ != nullptr) rail_->set_thresholds(thresholds.message);
  if (all_ != nullptr) all_->set_thresholds(thresholds.message);
}

// Decided by what all ranks know alike, so that both of a pair mean each other.
std::vector<int> HierarchicalCollectives::WhomToMeet() const {
  std::vector<int> peers;
  for (int member = 0; member < size(); ++member) {
    const RankPlace& place = topology_.place(member);
    const bool shares_rail = place.local_rank == place_.local_rank && rail_ != nullptr;
    if (place.host == place_.host) continue;
    if (size() <= kMostMet || (hosts() <= kMostMet && shares_rail)) peers.push_back(member);
  }
  return peers;
}

absl::Status HierarchicalCollectives::MeetPeers() {
  const std::vector<int> peers = WhomToMeet();
  if (peers.empty() && rail_ == nullptr) return absl::OkStatus();
  // More than can meet: the neighbours on the rail, by a ring.
  const int group = peers.empty() ? hosts() : size();
  const std::vector<size_t> one_byte(static_cast<size_t>(group), 1);
  const std::vector<std::byte> mine(one_byte.size());
  std::vector<std::byte> theirs(one_byte.size());
  absl::Status met;
  if (peers.empty()) {
    met = rail_->Allgather(
        {.input = mine.data(), .output = theirs.data(), .bytes_by_rank = one_byte});
  } else {
    const AlltoallArgs args{mine.data(), theirs.data(), one_byte, one_byte};
    auto run = all_->StartAlltoall(args, peers);
    met = run.ok() ? Finish(waiter_, run->get()) : run.status();
  }
  return met.ok() ? AwaitSettled() : met;
}

absl::Status HierarchicalCollectives::AwaitSettled() {
  const auto settling = transport_->Settle();
  if (!settling.ok()) return waiter_->EndEpoch(std::string(settling.status().message()));
  if (*settling == nullptr) return absl::OkStatus();
  absl::Status settled;
  const absl::Status waited = waiter_->Until([&] {
    const absl::StatusOr<bool> done = (*settling)->Test();
    settled = done.status();
    return !done.ok() || *done;
  });
  if (!waited.ok() || settled.ok()) return waited;
  return waiter_->EndEpoch(std::string(settled.message()));
}

}  // namespace hvd
