// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/world/set_collectives.h"

#include <utility>

namespace hvd::rt {

absl::Status SetCollectives::Meet(const CollectivesGround& ground) {
  const RankPlace& here = ground.seat->place();
  if (ground.transport == nullptr) {
    auto host = HostCollectives::Create({.waiter = ground.waiter,
                                         .region = ground.region,
                                         .local_rank = here.local_rank,
                                         .local_size = here.local_size});
    if (!host.ok()) return host.status();
    on_host_ = host->get();
    all_ = std::move(*host);
    return absl::OkStatus();
  }
  auto hosts = HierarchicalCollectives::Create({.waiter = ground.waiter,
                                                .transport = ground.transport,
                                                .region = ground.region,
                                                .topology = &ground.seat->topology(),
                                                .rank = ground.seat->rank(),
                                                .channel = ground.channel});
  if (!hosts.ok()) return hosts.status();
  across_hosts_ = hosts->get();
  all_ = std::move(*hosts);
  return across_hosts_->MeetPeers();
}

void SetCollectives::SetThresholds(const HierarchicalThresholds& thresholds) {
  if (on_host_ != nullptr) on_host_->set_thresholds(thresholds.host);
  if (across_hosts_ != nullptr) across_hosts_->set_thresholds(thresholds);
}

}  // namespace hvd::rt
