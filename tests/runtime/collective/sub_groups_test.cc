// SPDX-License-Identifier: Apache-2.0
// Overlapping groups of ranks of one job, each with collectives of its own, at the same time: every
// rank has a thread a group, and they share the rank's transport and event fd.
#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>

#include "absl/strings/str_cat.h"
#include "runtime/engine/set_transport.h"
#include "tests/runtime/collective/hierarchical_world.h"

namespace hvd::rt::test {
namespace {

// The members of a group, by global rank, and their places in it.
class Group {
 public:
  Group(const Topology& job, std::vector<int> members) : members_(std::move(members)) {
    std::vector<HostShape> hosts;
    for (const int member : members_) {
      const std::string& name = job.hosts()[job.place(member).host].name;
      if (hosts.empty() || hosts.back().name != name) hosts.push_back({name, 0});
      ++hosts.back().ranks;
    }
    for (const HostShape& host : job.hosts()) regions_.emplace_back(host.ranks, false);
    topology_ = Topology(hosts);
  }
  const std::vector<int>& members() const { return members_; }
  const Topology& topology() const { return topology_; }
  void* region(int host) const { return regions_[host].region(); }

 private:
  std::vector<int> members_;
  Topology topology_;
  std::deque<HostMemory> regions_;  // by host of the job
};

std::string AddAndGather(Collectives& ranks) {
  for (const size_t count : {1, 5000, 300000}) {
    std::vector<int> data(count, ranks.rank() + 1);
    absl::Status done = ranks.Allreduce({data.data(), data.data(), count, HVD_INT32, HVD_SUM});
    if (!done.ok()) return done.ToString();
    const int want = ranks.size() * (ranks.size() + 1) / 2;
    for (const int value : data) {
      if (value != want) return absl::StrCat("sum is ", value, ", not ", want);
    }
    std::vector<int> all(ranks.size(), -1);
    const int mine = ranks.rank();
    done = ranks.Allgather({&mine, all.data(), std::vector<size_t>(ranks.size(), sizeof(mine))});
    if (!done.ok()) return done.ToString();
    for (int rank = 0; rank < ranks.size(); ++rank) {
      if (all[rank] != rank) return absl::StrCat("gathered ", all[rank], " from ", rank);
    }
  }
  return "";
}

// One rank's part in one group.
struct Seat {
  const Topology& job;
  const Group& group;
  const HostMemory& memory;
  Transport* transport;
  int global_rank;
  uint16_t channel;  // the group's first
};

std::string Play(const Seat& seat) {
  const RankPlace& place = seat.job.place(seat.global_rank);
  const auto& members = seat.group.members();
  const auto found = std::find(members.begin(), members.end(), seat.global_rank);
  if (found == members.end()) return "";
  Waiter waiter(seat.memory.page(), place.local_rank, seat.memory.event_fds(),
                WaitPolicy::For(seat.job.size(), UsableCores()));
  waiter.set_transport(seat.transport);
  SetTransport transport(seat.transport, members, seat.channel);
  auto ranks = HierarchicalCollectives::Create({.waiter = &waiter,
                                                .transport = &transport,
                                                .region = seat.group.region(place.host),
                                                .topology = &seat.group.topology(),
                                                .rank = static_cast<int>(found - members.begin())});
  if (!ranks.ok()) return ranks.status().ToString();
  for (int round = 0; round < 5; ++round) {
    if (std::string wrong = AddAndGather(**ranks); !wrong.empty()) return wrong;
  }
  const absl::Status left = (*ranks)->Barrier();
  return left.ok() ? "" : left.ToString();
}

TEST_CASE("overlapping groups of several hosts work side by side") {
  for (const TransportKind kind : {TransportKind::kLoopback, TransportKind::kUcx}) {
    INFO(NameOf(kind));
    const Topology job({{"a", 2}, {"b", 3}});
    const Group groups[] = {Group(job, {0, 1, 2, 3, 4}), Group(job, {1, 3}), Group(job, {0, 2, 4}),
                            Group(job, {2, 3, 4}), Group(job, {1})};
    std::deque<HostMemory> memories;
    for (const HostShape& host : job.hosts()) memories.emplace_back(host.ranks, true);
    TransportWorld transports(kind, job.size());
    const std::string complaint = RunRanks(job.size(), [&](int rank) -> std::string {
      auto transport = transports.Join(rank);
      if (!transport.ok()) return transport.status().ToString();
      std::string wrong = RunRanks(std::size(groups), [&](int index) {
        return Play({job, groups[index], memories[job.place(rank).host], transport->get(), rank,
                     static_cast<uint16_t>(2 + 2 * index)});
      });
      transports.Leave();
      return wrong;
    });
    REQUIRE(complaint == "");
  }
}

}  // namespace
}  // namespace hvd::rt::test
