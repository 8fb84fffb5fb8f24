#include "daemon/job/launch_plan.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/job/worker_environment.h"
#include "daemon/link_b/epoch_token.h"
#include "hostfile/core_plan.h"
#include "proto/page/host_page.h"

namespace hvd {

bool LaunchPlan::Feeds(int local_rank) const {
  return stdin_rank == -2 || stdin_rank == first_rank + local_rank;
}

absl::StatusOr<LaunchPlan> PlanLaunch(const v1::Launch& launch) {
  if (launch.program().argv().empty() || launch.program().argv(0).empty()) {
    return absl::InvalidArgumentError("the launch names no command");
  }
  if (launch.host_index() >= static_cast<uint32_t>(launch.hosts_size())) {
    return absl::InvalidArgumentError("the launch has no place for this host");
  }
  if (launch.epoch_secret().size() < kEpochSecretBytes) {
    return absl::InvalidArgumentError("the launch carries no secret for its epochs");
  }
  std::vector<HostShape> hosts;
  for (const v1::HostShape& host : launch.hosts()) {
    if (host.ranks() == 0) return absl::InvalidArgumentError("a host of the launch has no rank");
    hosts.push_back({host.name(), static_cast<int>(host.ranks())});
  }
  LaunchPlan plan;
  plan.host_index = static_cast<int>(launch.host_index());
  plan.host_name = hosts[plan.host_index].name;
  plan.local_size = hosts[plan.host_index].ranks;
  plan.stdin_rank = launch.stdin_rank();
  if (plan.local_size > kMaxLocalRanks) {
    return absl::InvalidArgumentError(absl::StrCat(plan.local_size, " ranks on ", plan.host_name,
                                                   ": at most ", kMaxLocalRanks,
                                                   " share a host's memory"));
  }
  plan.topology = Topology(std::move(hosts));
  plan.first_rank = plan.topology.first_rank(plan.host_index);
  return plan;
}

SpawnOrder OrderFor(const RankLink& link, const LaunchContext& context) {
  const v1::Program& program = context.launch.program();
  const LaunchPlan& plan = context.plan;
  WorkerEnvironment environment;
  environment.launcher = {program.environment().begin(), program.environment().end()};
  environment.host = context.facts.environment;
  environment.own = {context.launch.own_environment().begin(),
                     context.launch.own_environment().end()};
  environment.gpu_uuids = context.facts.gpu_uuids;
  environment.host_name = plan.host_name;
  environment.first_host = plan.topology.hosts().front().name;
  environment.hosts = static_cast<int>(plan.topology.hosts().size());
  environment.link = link.link;
  environment.job = context.launch.job();
  environment.host_cores = static_cast<int>(context.facts.cores.size());
  environment.place = plan.topology.place(plan.first_rank + link.local_rank);
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
  const std::vector<int>& cores = context.facts.cores;
  if (!context.launch.unbound()) {
    order.cores = CoresFor(link.local_rank, plan.local_size, cores);
  }
  return order;
}

}  // namespace hvd
