#include "cli/foreign_options.h"

#include <algorithm>
#include <array>

namespace hvd {
namespace {

constexpr std::array kHorovodOptions = {
    "--disable-cache",
    "--config-file",
    "--cache-capacity",
    "--hierarchical-allreduce",
    "--no-hierarchical-allreduce",
    "--hierarchical-allgather",
    "--no-hierarchical-allgather",
    "--torus-allreduce",
    "--no-torus-allreduce",
    "--autotune-gaussian-process-noise",
    "--min-np",
    "--min-num-proc",
    "--max-np",
    "--max-num-proc",
    "--slots-per-host",
    "--slots",
    "--elastic-timeout",
    "--reset-limit",
    "--blacklist-cooldown-range",
    "--timeline-mark-cycles",
    "--no-timeline-mark-cycles",
    "--mpi-threads-disable",
    "--no-mpi-threads-disable",
    "--mpi-args",
    "--tcp",
    "--binding-args",
    "--num-nccl-streams",
    "--thread-affinity",
    "--gloo-timeout-seconds",
    "--log-with-timestamp",
    "--log-without-timestamp",
    "--log-hide-timestamp",
    "--no-log-hide-timestamp",
    "--host-discovery-script",
    "--gloo",
    "--mpi",
    "--jsrun",
};

}  // namespace

bool IsHorovodOption(const std::string& name) {
  return std::find(kHorovodOptions.begin(), kHorovodOptions.end(), name) != kHorovodOptions.end();
}

}  // namespace hvd
