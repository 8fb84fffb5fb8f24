#include "cli/foreign_options.h"

#include <algorithm>
#include <array>

namespace hvd {
namespace {

constexpr std::array kHorovodOptions = {
    "--disable-cache",
    "--network-interfaces",
    "--network-interface",
    "--config-file",
    "--fusion-threshold-mb",
    "--cycle-time-ms",
    "--cache-capacity",
    "--hierarchical-allreduce",
    "--no-hierarchical-allreduce",
    "--hierarchical-allgather",
    "--no-hierarchical-allgather",
    "--torus-allreduce",
    "--no-torus-allreduce",
    "--autotune",
    "--no-autotune",
    "--autotune-log-file",
    "--autotune-warmup-samples",
    "--autotune-steps-per-sample",
    "--autotune-bayes-opt-max-samples",
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
    "--stall-check",
    "--no-stall-check",
    "--stall-check-warning-time-seconds",
    "--stall-check-shutdown-time-seconds",
    "--mpi-threads-disable",
    "--no-mpi-threads-disable",
    "--mpi-args",
    "--tcp",
    "--binding-args",
    "--num-nccl-streams",
    "--thread-affinity",
    "--gloo-timeout-seconds",
    "--log-level",
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
