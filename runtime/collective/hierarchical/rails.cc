// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/hierarchical/rails.h"

#include <algorithm>
#include <utility>

#include "runtime/collective/slices.h"

namespace hvd::rt {
namespace {

int RanksOfSmallestHost(const Topology& topology) {
  int least = topology.hosts()[0].ranks;
  for (const HostShape& host : topology.hosts()) least = std::min(least, host.ranks);
  return least;
}

}  // namespace

Rails::Rails(const HierarchicalOptions& options, const HierarchicalThresholds& thresholds,
             std::unique_ptr<HostCollectives> host)
    : order_(*options.topology),
      place_(topology().place(order_.position_of(options.rank))),
      thresholds_(thresholds),
      count_(RanksOfSmallestHost(topology())),
      waiter_(options.waiter),
      host_(std::move(host)) {
  MessageGroupOptions everyone;
  everyone.waiter = options.waiter;
  everyone.transport = options.transport;
  everyone.index = place_.rank;
  everyone.channel = options.channel;
  everyone.lane = 1;
  for (int position = 0; position < size(); ++position)
    everyone.ranks.push_back(order_.rank_at(position));
  MessageGroupOptions rail = everyone;
  everyone_ = std::make_unique<MessageCollectives>(std::move(everyone), thresholds.message);
  if (place_.local_rank >= count_) return;
  rail.index = place_.host;
  rail.lane = 0;  // rails share no rank
  rail.ranks.clear();
  for (int h = 0; h < hosts(); ++h) {
    const int position = topology().rank_at(h, place_.local_rank);
    rail.ranks.push_back(order_.rank_at(position));
  }
  rail_ = std::make_unique<MessageCollectives>(std::move(rail), thresholds.message);
}

void Rails::set_thresholds(const HierarchicalThresholds& thresholds) {
  thresholds_ = thresholds;
  host_->set_thresholds(thresholds.host);
  if (rail_ != nullptr) rail_->set_thresholds(thresholds.message);
  everyone_->set_thresholds(thresholds.message);
}

std::vector<size_t> Rails::Bounds(size_t count) const {
  std::vector<size_t> bounds = EvenSlices(count, count_);
  bounds.resize(place_.local_size + 1, count);
  return bounds;
}

std::vector<size_t> Rails::BlockBounds(absl::Span<const size_t> by_position) const {
  std::vector<size_t> bounds = {0};
  for (int h = 0; h < hosts(); ++h) {
    const auto block = by_position.subspan(topology().rank_at(h, 0), topology().hosts()[h].ranks);
    bounds.push_back(bounds.back() + SumAndLargest(block).first);
  }
  return bounds;
}

absl::Status Rails::Join(std::byte* data, size_t bytes) {
  const std::vector<size_t> bounds = Bounds(bytes);
  std::vector<size_t> slices;
  slices.reserve(place_.local_size);
  for (int i = 0; i < place_.local_size; ++i) slices.push_back(bounds[i + 1] - bounds[i]);
  return host_->Allgather({data + bounds[place_.local_rank], data, slices});
}

std::byte* Rails::Room(size_t index, size_t bytes) {
  if (rooms_.size() <= index) rooms_.resize(index + 1);
  return rooms_[index].Take(bytes);
}

}  // namespace hvd::rt
