// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/hierarchical/host_order.h"

#include <utility>

#include "runtime/collective/kernels/copy.h"

namespace hvd::rt {
namespace {

Topology HostByHost(const Topology& by_rank) {
  std::vector<HostShape> hosts = by_rank.hosts();
  for (HostShape& host : hosts) host.numbers.clear();
  return Topology(std::move(hosts));
}

}  // namespace

HostOrder::HostOrder(const Topology& by_rank)
    : topology_(HostByHost(by_rank)),
      are_ranks_(by_rank.is_host_by_host()),
      position_of_(by_rank.size()) {
  rank_at_.reserve(by_rank.size());
  for (int host = 0; host < static_cast<int>(by_rank.hosts().size()); ++host) {
    for (int local = 0; local < by_rank.hosts()[host].ranks; ++local) {
      const int rank = by_rank.rank_at(host, local);
      position_of_[rank] = static_cast<int>(rank_at_.size());
      rank_at_.push_back(rank);
    }
  }
}

std::vector<size_t> HostOrder::ByPosition(absl::Span<const size_t> by_rank) const {
  std::vector<size_t> by_position;
  by_position.reserve(by_rank.size());
  for (const int rank : rank_at_) by_position.push_back(by_rank[rank]);
  return by_position;
}

void HostOrder::ToPositions(const std::byte* from, absl::Span<const size_t> bytes_by_rank,
                            std::byte* to) const {
  std::vector<const std::byte*> blocks;
  blocks.reserve(bytes_by_rank.size());
  for (const size_t bytes : bytes_by_rank) {
    blocks.push_back(from);
    from += bytes;
  }
  for (const int rank : rank_at_) {
    CopyBytes(to, blocks[rank], bytes_by_rank[rank]);
    to += bytes_by_rank[rank];
  }
}

void HostOrder::ToRanks(const std::byte* from, absl::Span<const size_t> bytes_by_rank,
                        std::byte* to) const {
  std::vector<std::byte*> blocks;
  blocks.reserve(bytes_by_rank.size());
  for (const size_t bytes : bytes_by_rank) {
    blocks.push_back(to);
    to += bytes;
  }
  for (const int rank : rank_at_) {
    CopyBytes(blocks[rank], from, bytes_by_rank[rank]);
    from += bytes_by_rank[rank];
  }
}

}  // namespace hvd::rt
