// SPDX-License-Identifier: Apache-2.0
#include "hostfile/topology.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "hostfile/host_item.h"

namespace hvd {
namespace {

// A table longer than this says nothing that its first lines do not.
constexpr size_t kShownHosts = 40;

std::string SlotsTable(absl::Span<const HostSlots> hosts) {
  size_t width = 4;
  for (const HostSlots& host : hosts.subspan(0, kShownHosts)) {
    width = std::max(width, host.name.size());
  }
  const int name_width = static_cast<int>(width);
  std::string table = absl::StrFormat("  %-*s  free slots  stated at\n", name_width, "host");
  for (const HostSlots& host : hosts.subspan(0, kShownHosts)) {
    absl::StrAppendFormat(&table, "  %-*s  %10d  %s\n", name_width, host.name, host.slots,
                          host.where.empty() ? "-" : host.where);
  }
  if (hosts.size() > kShownHosts) {
    absl::StrAppend(&table, "  and ", hosts.size() - kShownHosts, " more hosts\n");
  }
  return table;
}

absl::Status TooFewSlots(absl::Span<const HostSlots> hosts, int np, int64_t slots) {
  return absl::FailedPreconditionError(absl::StrCat(
      "-np ", np, " needs ", np, " slots, but ", hosts.size(),
      hosts.size() == 1 ? " host has " : " hosts have ", slots, "\n", SlotsTable(hosts),
      "  ask for -np ", slots, " or fewer, or give the hosts more slots (host:slots)"));
}

absl::Status WrongNumber(const HostShape& host, int rank, size_t size) {
  return absl::InvalidArgumentError(
      absl::StrCat("rank ", rank, " of ", host.name, " of ", size,
                   " ranks: it stands twice, or out of its order, or there is no such rank"));
}

}  // namespace

Topology::Topology(std::vector<HostShape> hosts) : hosts_(std::move(hosts)) {
  std::vector<int> owners;  // how many hosts own each local rank
  for (const HostShape& host : hosts_) {
    if (owners.size() < static_cast<size_t>(host.ranks)) owners.resize(host.ranks);
    const int index = static_cast<int>(first_.size());
    first_.push_back(static_cast<int>(ranks_.size()));
    for (int local = 0; local < host.ranks; ++local) {
      const auto next = static_cast<int>(ranks_.size());
      ranks_.push_back(host.numbers.empty() ? next : host.numbers[local]);
      places_.push_back({.rank = ranks_.back(),
                         .host = index,
                         .local_rank = local,
                         .local_size = host.ranks,
                         .cross_rank = owners[local]++,
                         .cross_size = 0});
    }
  }
  for (RankPlace& place : places_) place.cross_size = owners[place.local_rank];
  std::sort(places_.begin(), places_.end(),
            [](const RankPlace& a, const RankPlace& b) { return a.rank < b.rank; });
  if (std::is_sorted(ranks_.begin(), ranks_.end())) {
    for (HostShape& host : hosts_) host.numbers.clear();
  }
}

absl::Status Topology::CheckNumbers(absl::Span<const HostShape> hosts) {
  size_t size = 0, numbered = 0;
  for (const HostShape& host : hosts) {
    size += host.ranks;
    numbered += host.numbers.size();
  }
  if (numbered == 0) return absl::OkStatus();
  std::vector<bool> seen(size);
  int last_first = -1;
  for (const HostShape& host : hosts) {
    int last = last_first;
    for (const int rank : host.numbers) {
      const bool is_new = rank > last && static_cast<size_t>(rank) < size && !seen[rank];
      if (!is_new) return WrongNumber(host, rank, size);
      seen[rank] = true;
      last = rank;
    }
    if (host.numbers.size() != static_cast<size_t>(host.ranks)) {
      return absl::InvalidArgumentError(absl::StrCat(host.name, " has ", host.ranks, " ranks, but ",
                                                     host.numbers.size(), " numbers for them"));
    }
    last_first = host.numbers.front();
  }
  return absl::OkStatus();
}

Topology Topology::Numbered(absl::Span<const std::string> hosts,
                            absl::Span<const int> host_of_rank) {
  std::vector<HostShape> shapes;
  std::vector<int> shape_of(hosts.size(), -1);
  for (size_t rank = 0; rank < host_of_rank.size(); ++rank) {
    int& shape = shape_of[host_of_rank[rank]];
    if (shape < 0) {
      shape = static_cast<int>(shapes.size());
      shapes.push_back({hosts[host_of_rank[rank]], 0});
    }
    ++shapes[shape].ranks;
    shapes[shape].numbers.push_back(static_cast<int>(rank));
  }
  return Topology(std::move(shapes));
}

absl::StatusOr<Topology> Topology::Place(absl::Span<const HostSlots> hosts, int np) {
  if (np < 1 || np > kMaxRanks) {
    return absl::InvalidArgumentError(
        absl::StrCat("-np must be from 1 to ", kMaxRanks, ", not ", np));
  }
  int64_t slots = 0;
  for (const HostSlots& host : hosts) slots += host.slots;
  if (slots < np) return TooFewSlots(hosts, np, slots);
  std::vector<HostShape> shapes;
  int left = np;
  for (const HostSlots& host : hosts) {
    const int ranks = std::min(left, host.slots);
    if (ranks > 0) shapes.push_back({host.name, ranks});
    left -= ranks;
  }
  return Topology(std::move(shapes));
}

bool Topology::is_homogeneous() const {
  return std::all_of(hosts_.begin(), hosts_.end(),
                     [&](const HostShape& host) { return host.ranks == hosts_.front().ranks; });
}

}  // namespace hvd
