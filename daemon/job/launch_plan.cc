// SPDX-License-Identifier: Apache-2.0
#include "daemon/job/launch_plan.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/job/worker_environment.h"
#include "daemon/members/epoch_token.h"
#include "proto/adoption.h"
#include "proto/page/host_page.h"

namespace hvd::daemon {

absl::Status CheckPrepare(const v1::PrepareHost& prepare) {
  if (prepare.program().argv().empty() || prepare.program().argv(0).empty()) {
    return absl::InvalidArgumentError("the launch names no command");
  }
  if (prepare.slots() == 0)
    return absl::InvalidArgumentError("the launch has no slot on this host");
  if (prepare.epoch_secret().size() < kEpochSecretBytes) {
    return absl::InvalidArgumentError("the launch carries no secret for its epochs");
  }
  if (prepare.slots() > kMaxLocalRanks) {
    return absl::InvalidArgumentError(absl::StrCat(prepare.slots(), " ranks on ", prepare.name(),
                                                   ": at most ", kMaxLocalRanks,
                                                   " share a host's memory"));
  }
  return absl::OkStatus();
}

absl::StatusOr<EpochPlan> PlanEpoch(const v1::EpochPropose& propose,
                                    const v1::PrepareHost& prepare) {
  std::vector<HostShape> hosts;
  EpochPlan plan;
  plan.epoch = propose.epoch();
  const uint32_t slots = prepare.elastic() ? kMaxLocalRanks : prepare.slots();
  for (const v1::EpochHost& host : propose.hosts()) {
    if (host.members().empty()) return absl::InvalidArgumentError("a host of an epoch has no rank");
    if (host.host() == prepare.host()) {
      plan.state.is_void = host.void_state();
      plan.host = static_cast<int>(hosts.size());
      for (const v1::Seat& seat : host.members()) {
        if (seat.slot() >= slots) {
          return absl::InvalidArgumentError(absl::StrCat("an epoch has a member in slot ",
                                                         seat.slot(), " of ", prepare.name(),
                                                         ", which has ", slots));
        }
        plan.slots.push_back(static_cast<int>(seat.slot()));
      }
    }
    hosts.push_back({host.name(), host.members_size(), {host.ranks().begin(), host.ranks().end()}});
  }
  if (absl::Status numbered = Topology::CheckNumbers(hosts); !numbered.ok()) return numbered;
  plan.topology = Topology(std::move(hosts));
  plan.state.resume_commit = propose.resume_commit();
  plan.state.root = propose.root();
  plan.state.needy.assign(propose.needy().begin(), propose.needy().end());
  plan.state.rolls_back = propose.rolls_back();
  plan.state.survivors = static_cast<int>(propose.survivors());
  return plan;
}

absl::StatusOr<HostPlan> PlanShares(const v1::PrepareHost& prepare, const HostDevices& devices) {
  HostWish wish;
  wish.slots = static_cast<int>(prepare.slots());
  wish.binds_cores = !prepare.unbound();
  wish.most_cores = static_cast<int>(std::min(prepare.most_cores(), uint32_t{1} << 20));
  if (prepare.has_gpus_per_rank()) wish.gpus_per_rank = static_cast<int>(prepare.gpus_per_rank());
  return PlanHost(wish, devices);
}

void TellShares(const HostPlan& shares, v1::Launched* launched) {
  for (size_t slot = 0; slot < shares.slots.size(); ++slot) {
    const SlotShare& share = shares.slots[slot];
    v1::SlotShare& told = *launched->add_shares();
    told.set_slot(slot);
    for (const int core : share.cores) told.add_cores(core);
    for (const Gpu& gpu : share.gpus) {
      v1::GpuName& name = *told.add_gpus();
      name.set_uuid(gpu.uuid);
      name.set_name(gpu.name);
    }
    told.set_shared(share.shared);
    told.set_visible(share.visible.size());
  }
}

SpawnOrder OrderFor(const SlotLink& link, const SpawnContext& context) {
  const v1::PrepareHost& prepare = context.prepare;
  const v1::Program& program = prepare.program();
  const EpochPlan& plan = context.plan;
  WorkerEnvironment environment;
  environment.launcher = {program.environment().begin(), program.environment().end()};
  environment.host = context.facts.environment;
  environment.own = {prepare.own_environment().begin(), prepare.own_environment().end()};
  environment.gpu_uuids = context.shares.slots[link.share].visible;
  environment.host_name = prepare.name();
  environment.first_host = plan.topology.hosts().front().name;
  environment.hosts = static_cast<int>(plan.topology.hosts().size());
  environment.link = link.link;
  environment.job = prepare.job();
  environment.member = link.member;
  environment.host_cores = static_cast<int>(context.facts.devices.cores.size());
  environment.place = plan.topology.place(plan.RankOf(plan.LocalRankOf(link.slot)));
  environment.size = plan.topology.size();

  SpawnOrder order;
  order.argv = {program.argv().begin(), program.argv().end()};
  order.environment = BuildEnvironment(environment);
  order.directory = program.directory();
  order.umask = program.umask();
  order.door_fd = link.door_fd;
  for (const v1::Limit& limit : program.limits()) {
    order.limits.push_back({limit.resource(), limit.soft()});
  }
  order.cores = context.shares.slots[link.share].cores;
  if (prepare.adoption_key().empty()) return order;
  const int rank = environment.place.rank;
  order.claim = ClaimName(prepare.adoption_key(), geteuid(), rank);
  order.claim_grace_ms = static_cast<uint32_t>(prepare.grace_s() * 1000);
  // Rank 0 has started hvdrun, and waits already.
  order.claim_patience_ms =
      rank == 0 ? 0 : static_cast<uint32_t>(prepare.claim_patience_s() * 1000);
  return order;
}

}  // namespace hvd::daemon
