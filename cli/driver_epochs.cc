#include "cli/driver_epochs.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace hvd {

std::optional<v1::EpochTable> EpochBook::Collect(int host, const v1::HostAddresses& addresses,
                                                 double now) {
  Gathering& epoch = gathering_[addresses.epoch()];
  newest_ = std::max(newest_, addresses.epoch());
  if (epoch.addresses.empty()) epoch.since = now;
  if (!epoch.addresses.emplace(host, addresses).second) return std::nullopt;
  if (epoch.addresses.size() != topology_->hosts().size()) return std::nullopt;
  v1::EpochTable table;
  table.set_epoch(addresses.epoch());
  for (auto& [index, of_host] : epoch.addresses) {
    table.mutable_addresses()->MergeFrom(of_host.addresses());
  }
  return table;
}

bool EpochBook::Ready(int host, uint64_t epoch) {
  const auto found = gathering_.find(epoch);
  if (found == gathering_.end()) return false;
  found->second.ready.insert(host);
  if (found->second.ready.size() != topology_->hosts().size()) return false;
  gathering_.erase(found);
  return true;
}

double EpochBook::waiting_since() const {
  const auto first = gathering_.find(1);
  if (first == gathering_.end()) return 0;
  const bool complete = first->second.addresses.size() == topology_->hosts().size();
  return complete ? 0 : first->second.since;
}

std::string EpochBook::Missing() const {
  std::string missing;
  const auto first = gathering_.find(1);
  for (int host = 0; host < static_cast<int>(topology_->hosts().size()); ++host) {
    if (first == gathering_.end() || first->second.addresses.count(host) != 0) continue;
    const int begin = topology_->first_rank(host);
    const int end = begin + topology_->hosts()[host].ranks - 1;
    absl::StrAppend(&missing, missing.empty() ? "" : ", ", topology_->hosts()[host].name,
                    begin == end ? " (rank " : " (ranks ", begin);
    if (begin != end) absl::StrAppend(&missing, "-", end);
    missing += ")";
  }
  return missing;
}

}  // namespace hvd
