// SPDX-License-Identifier: Apache-2.0
#include "cli/front/words/agents.h"

#include <algorithm>
#include <array>

namespace hvd::cli {
namespace {

// A step of one task beside those of the job, whose shape its variables would else take over: with
// them srun would start more tasks, or bind to fewer cores. Unbuffered, since gRPC has no lines.
constexpr const char* kSrun =
    "for name in $(env | sed -n \"s/^\\(SLURM_[A-Z0-9_]*\\)=.*/\\1/p\"); do case $name in "
    "SLURM_NTASKS*|SLURM_NPROCS|SLURM_TASKS_PER_NODE|SLURM_NNODES|SLURM_CPU_BIND*|SLURM_MEM_BIND*|"
    "SLURM_STEP*|SLURM_PROCID|SLURM_LOCALID|SLURM_NODEID|SLURM_DISTRIBUTION|SLURM_CPUS_PER*|"
    "SLURM_GPUS_PER*|SLURM_TRES*|SLURM_UMASK) unset \"$name\";; esac; done; "
    "exec srun --overlap -N1 -n1 -w \"$1\" --mpi=none --unbuffered --cpu-bind=none --quiet "
    "/bin/sh -c \"$2\"";

constexpr std::array kAgents = {
    Agent{"srun", "srun", kSrun, "srun --overlap -N1 -n1 -w"},
    Agent{"qrsh", "qrsh", "exec qrsh -inherit \"$1\" \"$2\"", "qrsh -inherit"},
    Agent{"blaunch", "blaunch", "exec blaunch \"$1\" \"$2\"", "blaunch"},
    Agent{"kubectl", "kubectl", "exec kubectl exec -i \"$1\" -- /bin/sh -c \"$2\"",
          "kubectl exec -i"},
    Agent{"podman", "podman", "exec podman exec -i \"$1\" /bin/sh -c \"$2\"", "podman exec -i"},
    Agent{"docker", "docker", "exec docker exec -i \"$1\" /bin/sh -c \"$2\"", "docker exec -i"},
};

}  // namespace

const Agent* FindAgent(std::string_view word) {
  const auto* const found = std::find_if(kAgents.begin(), kAgents.end(),
                                         [word](const Agent& each) { return word == each.name; });
  return found == kAgents.end() ? nullptr : found;
}

std::vector<std::string> ArgvOf(const Agent& agent) {
  return {"/bin/sh", "-c", agent.script, agent.name};
}

}  // namespace hvd::cli
