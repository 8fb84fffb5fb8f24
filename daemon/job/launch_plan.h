// A Launch turned into what each local rank is started with. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/shim/spawn_order.h"
#include "hostfile/topology.h"
#include "hvd/v1/link_a.pb.h"

namespace hvd {

// What the host brings to a launch.
struct HostFacts {
  std::vector<std::string> environment;
  std::vector<int> cores;  // that hvdd may use
  std::vector<std::string> gpu_uuids;
};

struct LaunchPlan {
  Topology topology;
  int host_index = 0;
  std::string host_name;  // as the job calls this host
  int first_rank = 0;
  int local_size = 0;
  bool Feeds(int local_rank) const;  // gets hvdrun's stdin
  int64_t stdin_rank = 0;
};

// InvalidArgument: the launch makes no sense; says what is wrong with it.
absl::StatusOr<LaunchPlan> PlanLaunch(const v1::Launch& launch);

struct RankLink {
  int local_rank = 0;
  std::string link;  // HVD_LINK
  int door_fd = -1;
};

struct LaunchContext {
  const v1::Launch& launch;
  const LaunchPlan& plan;
  const HostFacts& facts;
};
SpawnOrder OrderFor(const RankLink& link, const LaunchContext& context);

}  // namespace hvd
