// SPDX-License-Identifier: Apache-2.0
#include "cli/reach/agent_failure.h"

#include <array>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/printable.h"
#include "cli/front/words/agents.h"

namespace hvd::cli {
namespace {

struct Row {
  const char* agent;
  const char* words;
  AgentFault fault;
};

constexpr const char* kSeeJob = "see `scontrol show job` for the job's nodes and its state";
constexpr const char* kSeePods = "see `kubectl get pods`; is the namespace the right one?";
constexpr const char* kSeeEngine = "is the engine running here (`SHELL ps`)?";

// Rows are tried in order, so a precise one stands before a vague one.
constexpr std::array kRows = {
    Row{"srun",
        "Invalid node name specified",
        {StartFault::kUnknownHost, "Slurm knows no such node", kSeeJob}},
    Row{"srun",
        "Requested node configuration is not available",
        {StartFault::kUnknownHost, "it is no node of this job", kSeeJob}},
    Row{"srun",
        "Requested nodes not in the allocation",
        {StartFault::kUnknownHost, "it is no node of this job", kSeeJob}},
    Row{"srun",
        "Job/step already completing or completed",
        {StartFault::kRefused, "the allocation is over", "ask for another one (salloc, sbatch)"}},
    Row{"srun",
        "Invalid job id specified",
        {StartFault::kRefused, "the allocation is over", "ask for another one (salloc, sbatch)"}},
    Row{"srun",
        "Job has expired",
        {StartFault::kRefused, "the allocation is over", "ask for another one (salloc, sbatch)"}},
    Row{"srun",
        "Unable to contact slurm controller",
        {StartFault::kNoRoute, "Slurm's controller does not answer", "is slurmctld up (sinfo)?"}},
    Row{"srun",
        "Access/permission denied",
        {StartFault::kDenied, "Slurm does not let this user start steps there", kSeeJob}},
    Row{"srun",
        "Communication connection failure",
        {StartFault::kNoRoute, "Slurm's daemon there does not answer",
         "is slurmd up on HOST (sinfo -N -n HOST)?"}},
    Row{"qrsh",
        "failed sending task to execd@",
        {StartFault::kNoRoute, "Grid Engine's daemon there does not answer",
         "is sge_execd up on HOST (qhost -h HOST)?"}},
    Row{"qrsh",
        "executing task of job",
        {StartFault::kRefused, "Grid Engine starts no task of this job there",
         "has the parallel environment control_slaves TRUE (qconf -sp), and the job a slot on HOST "
         "that is free (qstat -g t)?"}},
    Row{"qrsh",
        "denied: host",
        {StartFault::kDenied, "Grid Engine does not let this host submit or execute",
         "add it: qconf -as, qconf -ae"}},
    Row{"kubectl", "(NotFound)", {StartFault::kUnknownHost, "there is no such pod", kSeePods}},
    Row{"kubectl",
        "(Forbidden)",
        {StartFault::kDenied, "this account may not run commands in pods",
         "give its role get on pods and create on pods/exec"}},
    Row{"kubectl",
        "You must be logged in to the server",
        {StartFault::kDenied, "the API server does not know this account",
         "see `kubectl auth whoami`"}},
    Row{"kubectl",
        "container not found",
        {StartFault::kRefused, "the pod's container is not running", kSeePods}},
    Row{"kubectl",
        "unable to upgrade connection",
        {StartFault::kRefused, "the pod's container is not running", kSeePods}},
    Row{"kubectl",
        "cannot exec into a container in a completed pod",
        {StartFault::kRefused, "the pod has ended", kSeePods}},
    Row{"kubectl",
        "The connection to the server",
        {StartFault::kNoRoute, "the API server does not answer", "see `kubectl cluster-info`"}},
    Row{"kubectl",
        "Unable to connect to the server",
        {StartFault::kNoRoute, "the API server does not answer", "see `kubectl cluster-info`"}},
    Row{"podman",
        "no such container",
        {StartFault::kUnknownHost, "there is no such container", "see `SHELL ps --all`"}},
    Row{"podman",
        "container state improper",
        {StartFault::kRefused, "the container is not running", "see `SHELL ps --all`"}},
    Row{"docker",
        "No such container",
        {StartFault::kUnknownHost, "there is no such container", "see `SHELL ps --all`"}},
    Row{"docker",
        "is not running",
        {StartFault::kRefused, "the container is not running", "see `SHELL ps --all`"}},
    Row{"docker",
        "permission denied while trying to connect",
        {StartFault::kDenied, "this user may not ask the engine", "add the user to its group"}},
    Row{"docker",
        "Cannot connect to the Docker daemon",
        {StartFault::kNoRoute, "the engine does not answer", kSeeEngine}},
    Row{"",
        "\"/bin/sh\": stat /bin/sh: no such file or directory",
        {StartFault::kRestrictedShell, "there is no /bin/sh in the container",
         "use an image that has one"}},
};

}  // namespace

std::optional<AgentFault> FindAgentFault(absl::string_view shell, absl::string_view errors) {
  const Agent* const agent = FindAgent({shell.data(), shell.size()});
  if (agent == nullptr) return std::nullopt;
  // As /bin/sh says it, which calls the agent.
  if (absl::StrContains(errors, absl::StrCat(agent->program, ": not found")) ||
      absl::StrContains(errors, absl::StrCat(agent->program, ": command not found"))) {
    return AgentFault{StartFault::kShellMissing, "SHELL cannot be started here",
                      "is it on the PATH? --rsh-agent names another way"};
  }
  for (const Row& row : kRows) {
    const bool its = *row.agent == '\0' || shell == row.agent;
    if (its && absl::StrContains(errors, row.words)) return row.fault;
  }
  return std::nullopt;
}

// "slurmstepd-n1: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-27T06:51:56 DUE TO TIME LIMIT
// ***". A node's failure is another thing: what was on it is lost.
std::string FindManagerStop(absl::string_view errors) {
  for (const absl::string_view line : absl::StrSplit(errors, '\n')) {
    const size_t begin = line.find("*** ");
    if (!absl::StrContains(line, "slurmstepd") || begin == line.npos) continue;
    absl::string_view words = line.substr(begin + 4);
    words = words.substr(0, words.find(" ***"));
    if (!absl::StrContains(words, " CANCELLED AT ") || absl::StrContains(words, "NODE FAILURE")) {
      continue;
    }
    return absl::StrCat("Slurm: ", Printable({words.data(), words.size()}, 200));
  }
  return "";
}

}  // namespace hvd::cli
