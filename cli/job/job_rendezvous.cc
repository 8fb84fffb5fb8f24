// SPDX-License-Identifier: Apache-2.0
#include "cli/job/job_rendezvous.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/report/verdict.h"

namespace hvd::cli {

void JobRendezvous::Joined(int rank, uint64_t epoch, double now) {
  if (epoch <= latest_[rank]) return;
  const uint64_t before = std::exchange(latest_[rank], epoch);
  if (!WaitedIn(before)) gathering_.erase(before);
  newest_ = std::max(newest_, epoch);
  Gathering& gathering = gathering_[epoch];
  if (gathering.joined.empty()) gathering.since = now;
  gathering.joined.insert(rank);
}

// `latest_` goes back below `epoch`, so that it counts as one who has not come to it.
void JobRendezvous::Withdrawn(int rank, uint64_t epoch) {
  const auto found = gathering_.find(epoch);
  if (found == gathering_.end() || latest_[rank] != epoch) return;
  latest_[rank] = epoch - 1;
  found->second.joined.erase(rank);
  if (!WaitedIn(epoch)) gathering_.erase(found);
}

bool JobRendezvous::WaitedIn(uint64_t epoch) const {
  return std::any_of(latest_.begin(), latest_.end(),
                     [epoch](const auto& entry) { return entry.second == epoch; });
}

std::optional<v1::EpochTable> JobRendezvous::Collect(int host, const v1::HostAddresses& addresses) {
  Gathering& epoch = gathering_[addresses.epoch()];
  newest_ = std::max(newest_, addresses.epoch());
  if (!epoch.addresses.emplace(host, addresses).second) return std::nullopt;
  if (epoch.addresses.size() != topology_->hosts().size()) return std::nullopt;
  v1::EpochTable table;
  table.set_epoch(addresses.epoch());
  for (auto& [index, of_host] : epoch.addresses) {
    table.mutable_addresses()->MergeFrom(of_host.addresses());
  }
  return table;
}

bool JobRendezvous::Ready(int host, uint64_t epoch) {
  const auto found = gathering_.find(epoch);
  if (found == gathering_.end()) return false;
  found->second.ready.insert(host);
  if (found->second.ready.size() != topology_->hosts().size()) return false;
  gathering_.erase(found);
  return true;
}

std::vector<uint64_t> JobRendezvous::WaitingFor(int rank) const {
  const auto found = latest_.find(rank);
  const uint64_t latest = found == latest_.end() ? 0 : found->second;
  std::vector<uint64_t> numbers;
  for (const auto& [number, epoch] : gathering_) {
    if (number > latest && WaitedIn(number)) numbers.push_back(number);
  }
  return numbers;
}

double JobRendezvous::waiting_since() const {
  const auto first = gathering_.find(1);
  if (first == gathering_.end() || newest_ > 1) return 0;
  const bool complete = static_cast<int>(first->second.joined.size()) == topology_->size();
  return complete ? 0 : first->second.since;
}

std::string JobRendezvous::Missing() const {
  const auto first = gathering_.find(1);
  if (first == gathering_.end()) return "";
  std::vector<std::string> hosts;
  for (int host = 0; host < static_cast<int>(topology_->hosts().size()); ++host) {
    std::vector<int> ranks;
    for (const int rank : topology_->ranks_of(host)) {
      if (first->second.joined.count(rank) == 0) ranks.push_back(rank);
    }
    if (ranks.empty()) continue;
    hosts.push_back(absl::StrCat(topology_->hosts()[host].name,
                                 ranks.size() == 1 ? " (rank " : " (ranks ", FoldNumbers(ranks),
                                 ")"));
  }
  return absl::StrJoin(hosts, ", ");
}

}  // namespace hvd::cli
