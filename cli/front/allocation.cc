// SPDX-License-Identifier: Apache-2.0
#include "cli/front/allocation.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/printable.h"
#include "cli/front/words/run_options.h"
#include "hostfile/host_item.h"
#include "hostfile/slurm_shape.h"

namespace hvd::cli {
namespace {

using Found = absl::StatusOr<std::optional<Allocation>>;

constexpr const char* kInstead = "; give the hosts by -H or --hostfile";

// A fault in what a variable of a manager's names, or holds, is the manager's mistake, or the
// variable is a leftover.
absl::Status OfVariable(const absl::Status& status, const std::string& name) {
  return absl::InvalidArgumentError(
      absl::StrCat(status.message(), "\n  $", name, " says so", kInstead));
}

absl::StatusOr<std::string> ReadNamed(const FrontWorld& world, const std::string& variable) {
  absl::StatusOr<std::string> text = world.read_file(VariableOf(world, variable));
  if (text.ok()) return text;
  return OfVariable(
      absl::InvalidArgumentError(absl::StrCat("the list of hosts ", text.status().message())),
      variable);
}

Allocation Of(const std::string& manager, const char* variable, std::vector<HostSlots> hosts,
              const char* agent) {
  return {manager, absl::StrCat(manager, " ($", variable, ")"), std::move(hosts), agent};
}

// ---- Slurm ----

struct SlurmVariables {
  const char* nodes;
  const char* tasks;
};

// The nodes that the job has now, without those that are to be left or do not answer; or the exit
// code of one that is over. The last task of a job array is numbered as the array is: hence %A.
constexpr const char* kSlurmLook =
    "job=$(squeue -h -t all -j \"$SLURM_JOB_ID\" -o '%A %T %N' 2>&1) || "
    "{ echo \"$job\" >&2; case $job in *'Invalid job id'*) exit 79;; esac; exit 1; }; "
    "set -- $(echo \"$job\" | awk -v id=\"$SLURM_JOB_ID\" '$1 == id {print $2, $3; exit}'); "
    "case $1 in RUNNING|CONFIGURING|SUSPENDED|STOPPED|RESIZING|SIGNALING) ;; "
    "'') echo \"squeue does not name job $SLURM_JOB_ID\" >&2; exit 1;; *) exit 79;; esac; "
    "test -n \"$2\" || { echo \"squeue names no nodes of job $SLURM_JOB_ID\" >&2; exit 1; }; "
    "states=$(sinfo -h -N -n \"$2\" -o '%N %T') || exit; echo \"$states\" | "
    "awk '$2 !~ /drain|down|fail|err|unknown|[*]/ && !seen[$1]++ {print $1}'";
static_assert(kJobIsOver == 79, "as the look has it");

// The job's; within a step also its own, which count where the job's are not whole.
constexpr std::array kSlurmVariables = {
    SlurmVariables{"SLURM_JOB_NODELIST", "SLURM_TASKS_PER_NODE"},
    SlurmVariables{"SLURM_STEP_NODELIST", "SLURM_STEP_TASKS_PER_NODE"},
};

absl::StatusOr<std::vector<HostSlots>> SlurmHosts(const FrontWorld& world,
                                                  const SlurmVariables& names) {
  auto hosts = ParseHostList(VariableOf(world, names.nodes), absl::StrCat("$", names.nodes));
  if (!hosts.ok()) return OfVariable(hosts.status(), names.nodes);
  const std::string shape = VariableOf(world, names.tasks);
  if (shape.empty()) return hosts;  // a node without a number has one task
  const auto tasks = ParseTasksPerNode(shape, names.tasks);
  if (!tasks.ok()) return tasks.status();
  if (tasks->size() != hosts->size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("$", names.nodes, " has ", hosts->size(), " hosts and $", names.tasks, " (",
                     Printable(shape, 200), ") ", tasks->size(), kInstead));
  }
  std::vector<HostSlots> used;
  for (size_t i = 0; i < hosts->size(); ++i) {
    HostSlots host = (*hosts)[i];
    host.slots = (*tasks)[i];
    if (host.slots > 0) used.push_back(std::move(host));
  }
  return used;
}

Found FindSlurm(const FrontWorld& world) {
  absl::Status first;
  for (const SlurmVariables& names : kSlurmVariables) {
    if (VariableOf(world, names.nodes).empty()) continue;
    auto hosts = SlurmHosts(world, names);
    if (hosts.ok()) {
      Found found = Of(absl::StrCat("Slurm job ", Printable(VariableOf(world, "SLURM_JOB_ID"))),
                       names.nodes, *std::move(hosts), "srun");
      if (!absl::SimpleAtoi(VariableOf(world, "SLURM_CPUS_PER_TASK"), &(*found)->cores_per_rank))
        (*found)->cores_per_rank = 0;
      if (&names == &kSlurmVariables[0]) (*found)->look = kSlurmLook;  // a step's nodes stay
      // Batch scripts and steps know their node; salloc's own shell may even be on one of the job.
      (*found)->shell_is_outside = VariableOf(world, "SLURMD_NODENAME").empty();
      return found;
    }
    if (first.ok()) first = hosts.status();
  }
  if (!first.ok()) return first;
  return std::nullopt;
}

// ---- Grid Engine ----

// "host slots queue processors" a line.
Found FindGridEngine(const FrontWorld& world) {
  constexpr const char* kName = "PE_HOSTFILE";
  const std::string path = VariableOf(world, kName);
  if (path.empty()) return std::nullopt;
  const auto text = ReadNamed(world, kName);
  if (!text.ok()) return text.status();
  std::string ours;
  for (const absl::string_view line : absl::StrSplit(*text, '\n')) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (!words.empty()) absl::StrAppend(&ours, words[0]);
    if (words.size() > 1) absl::StrAppend(&ours, " slots=", words[1]);
    absl::StrAppend(&ours, "\n");
  }
  auto hosts = ParseHostfile(ours, path);
  if (!hosts.ok()) return OfVariable(hosts.status(), kName);
  Allocation found = Of(absl::StrCat("Grid Engine job ", Printable(VariableOf(world, "JOB_ID"))),
                        kName, *std::move(hosts), "qrsh");
  found.end_notice = SIGUSR2;  // of jobs that ask for it: qsub -notify
  return found;
}

// ---- PBS and LSF ----

struct Owner {
  std::string manager;
  const char* agent;
};

// Finds the hosts in a file with a host a line, each as often as it has slots.
Found FindMentions(const FrontWorld& world, const char* name, const Owner& owner) {
  const std::string path = VariableOf(world, name);
  if (path.empty()) return std::nullopt;
  const auto text = ReadNamed(world, name);
  if (!text.ok()) return text.status();
  auto hosts = ParseHostfile(*text, path);
  if (!hosts.ok()) return OfVariable(hosts.status(), name);
  return Of(owner.manager, name, *std::move(hosts), owner.agent);
}

Found FindPbs(const FrontWorld& world) {
  return FindMentions(world, "PBS_NODEFILE",
                      {absl::StrCat("PBS job ", Printable(VariableOf(world, "PBS_JOBID"))), ""});
}

// "host1 4 host2 4".
Found FindLsfPairs(const FrontWorld& world, const std::string& manager) {
  constexpr const char* kName = "LSB_MCPU_HOSTS";
  const std::string text = VariableOf(world, kName);
  const std::vector<std::string> words = absl::StrSplit(text, ' ', absl::SkipEmpty());
  if (words.empty()) return std::nullopt;
  std::string ours;
  for (size_t i = 0; i < words.size(); i += 2) {
    absl::StrAppend(&ours, words[i], " slots=", i + 1 < words.size() ? words[i + 1] : "", "\n");
  }
  auto hosts = ParseHostfile(ours, absl::StrCat("$", kName));
  if (!hosts.ok()) return OfVariable(hosts.status(), kName);
  return Of(manager, kName, *std::move(hosts), "blaunch");
}

Found FindLsf(const FrontWorld& world) {
  const std::string manager = absl::StrCat("LSF job ", Printable(VariableOf(world, "LSB_JOBID")));
  Found found = FindMentions(world, "LSB_DJOB_HOSTFILE", {manager, "blaunch"});
  if (!found.ok() || found->has_value()) return found;
  return FindLsfPairs(world, manager);
}

// ---- the MPI operator of Kubernetes ----

struct OperatorVariables {
  const char* hostfile;
  const char* slots;  // of a host for which the file states none
};

constexpr std::array kOperatorVariables = {
    OperatorVariables{"OMPI_MCA_orte_default_hostfile", "OMPI_MCA_orte_set_default_slots"},
    OperatorVariables{"I_MPI_HYDRA_HOST_FILE", "I_MPI_PERHOST"},
    OperatorVariables{"HYDRA_HOST_FILE", ""},
};

Found FindOperator(const FrontWorld& world) {
  for (const OperatorVariables& names : kOperatorVariables) {
    const std::string path = VariableOf(world, names.hostfile);
    if (path.empty()) continue;
    const auto text = ReadNamed(world, names.hostfile);
    if (!text.ok()) return text.status();
    int unstated = 1;
    if (!absl::SimpleAtoi(VariableOf(world, names.slots), &unstated) || unstated < 1) unstated = 1;
    auto hosts = ParseHostfile(*text, path, std::min(unstated, kMaxRanks));
    if (!hosts.ok()) return OfVariable(hosts.status(), names.hostfile);
    Allocation found = Of("", names.hostfile, *std::move(hosts), "");
    found.source = absl::StrCat(path, found.source);
    found.hostfile = path;
    found.unstated_slots = std::min(unstated, kMaxRanks);
    return found;
  }
  return std::nullopt;
}

}  // namespace

std::string VariableOf(const FrontWorld& world, const std::string& name) {
  for (const std::string& entry : world.environment) {
    if (absl::StartsWith(entry, name + "=")) return entry.substr(name.size() + 1);
  }
  return "";
}

absl::StatusOr<std::optional<Allocation>> FindAllocation(const FrontWorld& world) {
  for (const auto& find : {FindSlurm, FindGridEngine, FindPbs, FindLsf, FindOperator}) {
    Found found = find(world);
    if (!found.ok() || found->has_value()) return found;
  }
  return std::nullopt;
}

}  // namespace hvd::cli
