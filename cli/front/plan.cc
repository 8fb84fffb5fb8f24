// SPDX-License-Identifier: Apache-2.0
#include "cli/front/plan.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/printable.h"
#include "cli/front/adopted.h"
#include "cli/front/allocation.h"
#include "cli/front/local_host.h"
#include "cli/front/own_names.h"
#include "cli/front/python_hook.h"
#include "cli/front/sent_environment.h"
#include "cli/front/words/agents.h"
#include "hostfile/host_item.h"
#include "proto/page/host_page.h"
#include "proto/settings/setting_values.h"

namespace hvd::cli {
namespace {

constexpr const char* kHostfileVariable = "HVD_HOSTFILE";
constexpr double kManagerInterval = 2;  // s between looks

std::string Absolute(const std::string& path, const FrontWorld& world) {
  if (path.empty()) return path;
  return (std::filesystem::path(world.directory) / path).lexically_normal().string();
}

int UnstatedSlots(const RunOptions& run) {
  return run.elastic.has_value() ? std::max(run.elastic->slots_per_host, 1) : 1;
}

absl::Status ReadHostfile(const std::string& path, const FrontWorld& world, RunOptions* run) {
  const absl::StatusOr<std::string> text = world.read_file(path);
  if (!text.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("the hostfile ", text.status().message()));
  }
  absl::StatusOr<std::vector<HostSlots>> hosts = ParseHostfile(*text, path, UnstatedSlots(*run));
  if (!hosts.ok()) return hosts.status();
  run->hosts = *std::move(hosts);
  run->hosts_source = path;
  if (run->elastic.has_value()) run->elastic->hostfile = Absolute(path, world);
  return absl::OkStatus();
}

// An elastic job uses no more of a host's slots than one host can have ranks; a static one is told.
int MostSlots(const RunOptions& run) {
  return run.elastic.has_value() ? kMaxLocalRanks : kMaxRanks;
}

// Returns as many ranks as -np or, in its place, --min-np says; 0: neither.
int WantedRanks(const RunOptions& run) {
  return run.np == 0 && run.elastic.has_value() ? run.elastic->min_np : run.np;
}

absl::Status ChooseThisHost(RunOptions* run) {
  const int wanted = WantedRanks(*run);
  if (wanted == 0) {
    return absl::InvalidArgumentError(
        "how many ranks? Give -np N, or hosts with their slots by -H or --hostfile");
  }
  HostSlots host;
  host.name = "localhost";
  host.slots = wanted;
  run->hosts = {host};
  run->hosts_source = "localhost";
  return absl::OkStatus();
}

// Whether a command of this name could be started.
bool IsOnPath(const FrontWorld& world, const std::string& program) {
  for (const absl::string_view folder : absl::StrSplit(VariableOf(world, "PATH"), ':')) {
    if (!folder.empty() && world.file_exists(absl::StrCat(folder, "/", program))) return true;
  }
  return false;
}

// An elastic job follows its allocation: a file that is kept up to date, or what the manager says.
void FollowAllocation(const Allocation& allocation, const FrontWorld& world,
                      ElasticOptions* elastic) {
  if (!allocation.hostfile.empty()) {
    elastic->hostfile = Absolute(allocation.hostfile, world);
    // As it is read again and again.
    if (elastic->slots_per_host == 0) elastic->slots_per_host = allocation.unstated_slots;
  }
  elastic->manager_look = allocation.look;
  // One controller serves a whole cluster.
  if (!allocation.look.empty() && !elastic->interval_is_given) {
    elastic->discovery_interval_s = kManagerInterval;
  }
}

// By its manager's own way of starting something, unless the person names another.
void TakeAllocation(const Allocation& allocation, const FrontWorld& world, RunOptions* run) {
  int64_t slots = 0;
  for (const HostSlots& host : allocation.hosts) slots += host.slots;
  run->hosts = allocation.hosts;
  run->hosts_source = allocation.source;
  run->manager = allocation.manager;
  run->end_notice = allocation.end_notice;
  run->most_cores = std::max(0, allocation.cores_per_rank);
  if (!allocation.hostfile.empty()) run->waits_for_hosts = true;  // an operator starts all at once
  std::string note =
      absl::StrCat("the hosts are those of ", allocation.source, ": ", allocation.hosts.size(),
                   allocation.hosts.size() == 1 ? " host, " : " hosts, ", slots,
                   slots == 1 ? " slot" : " slots");
  if (run->elastic.has_value()) FollowAllocation(allocation, world, &*run->elastic);
  if (!run->agent_is_given && !allocation.agent.empty()) {
    const bool there = IsOnPath(world, FindAgent(allocation.agent)->program);
    if (there) run->rsh_agent = allocation.agent;
    if (there && allocation.shell_is_outside) {
      run->is_local_host = [](const HostSlots&) { return false; };
    }
    absl::StrAppend(&note, there ? ", reached by " : ", reached by ssh: there is no ",
                    allocation.agent);
  }
  run->hosts_note = std::move(note);
}

absl::Status ChooseHosts(const TypedOptions& typed, const FrontWorld& world, RunOptions* run) {
  if (typed.has_hosts) {
    absl::StatusOr<std::vector<HostSlots>> hosts =
        ParseHostList(typed.hosts, "-H", UnstatedSlots(*run));
    if (!hosts.ok()) return hosts.status();
    run->hosts = *std::move(hosts);
    run->hosts_source = "-H";
    return absl::OkStatus();
  }
  if (typed.has_hostfile) return ReadHostfile(typed.hostfile, world, run);
  const std::string variable = VariableOf(world, kHostfileVariable);
  if (!variable.empty()) {
    const absl::Status read = ReadHostfile(variable, world, run);
    if (read.ok()) return read;
    return absl::InvalidArgumentError(
        absl::StrCat(read.message(), "\n  $", kHostfileVariable, " names this file"));
  }
  const auto allocation = FindAllocation(world);
  if (!allocation.ok()) return allocation.status();
  if (allocation->has_value()) {
    TakeAllocation(**allocation, world, run);
    return absl::OkStatus();
  }
  return ChooseThisHost(run);
}

absl::Status CheckRanksOfHosts(const Topology& topology) {
  for (const HostShape& host : topology.hosts()) {
    if (host.ranks <= kMaxLocalRanks) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        host.ranks, " ranks on ", host.name, ": one host runs at most ", kMaxLocalRanks,
        " ranks of a job; give more hosts by -H or --hostfile, or a ", "smaller -np"));
  }
  return absl::OkStatus();
}

absl::Status MergeNames(RunOptions* run) {
  absl::StatusOr<std::vector<std::string>> merged = MergeOwnNames(run->is_local_host, &run->hosts);
  if (!merged.ok()) return merged.status();
  run->notes.insert(run->notes.end(), merged->begin(), merged->end());
  return absl::OkStatus();
}

// How many ranks the start needs: of an elastic job as many as there are slots, if there are
// fewer than -np and not fewer than --min-np.
absl::Status CountRanks(RunOptions* run) {
  int64_t slots = 0;
  for (const HostSlots& host : run->hosts) slots += std::min(host.slots, MostSlots(*run));
  const int wanted = WantedRanks(*run);
  if (wanted == 0 && slots > kMaxRanks) {
    return absl::InvalidArgumentError(
        absl::StrCat("the hosts have ", slots, " slots; give -np N, at most ", kMaxRanks));
  }
  run->np = wanted != 0 ? wanted : static_cast<int>(slots);
  if (!run->elastic.has_value()) return absl::OkStatus();
  ElasticOptions& elastic = *run->elastic;
  if (wanted == 0 && elastic.max_np != 0) run->np = std::min(run->np, elastic.max_np);
  if (elastic.min_np == 0) elastic.min_np = run->np;
  if (slots >= run->np) return absl::OkStatus();
  // Too few even for the least: the table of slots is told of that number.
  run->np = std::max(static_cast<int>(slots), elastic.min_np);
  if (slots < elastic.min_np) return absl::OkStatus();
  run->notes.push_back(absl::StrCat("the hosts have ", slots, " slots for -np ", wanted,
                                    "; the start needs ", run->np,
                                    run->np == 1 ? " rank" : " ranks"));
  return absl::OkStatus();
}

// Too few slots for the least number of ranks, which the option has another name for.
absl::Status OfLeast(const absl::Status& too_few) {
  return absl::Status(too_few.code(),
                      absl::StrReplaceAll(too_few.message(), {{"-np ", "--min-np "}}));
}

absl::Status PlaceRanks(RunOptions* run) {
  if (absl::Status counted = CountRanks(run); !counted.ok()) return counted;
  std::vector<HostSlots> usable = run->hosts;
  for (HostSlots& host : usable) host.slots = std::min(host.slots, MostSlots(*run));
  absl::StatusOr<Topology> topology = run->adoption.has_value() ? AdoptedTopology(*run->adoption)
                                                                : Topology::Place(usable, run->np);
  if (!topology.ok())
    return run->elastic.has_value() ? OfLeast(topology.status()) : topology.status();
  if (absl::Status fits = CheckRanksOfHosts(*topology); !fits.ok()) return fits;
  run->topology = *std::move(topology);
  // Ranks fill the hosts in order, so the topology's hosts are the first ones of the list.
  run->host_of.assign(run->hosts.begin(), run->hosts.begin() + run->topology.hosts().size());
  for (const HostSlots& host : run->host_of) run->is_local.push_back(run->is_local_host(host));
  return absl::OkStatus();
}

// The script's first list comes later, and with it the places.
absl::Status AwaitHosts(RunOptions* run) {
  run->hosts_source = "--host-discovery-script";
  run->np = WantedRanks(*run);
  if (run->np != 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "how many ranks? Give -np N, or --min-np N for the least that the job can go on with");
}

absl::Status PlanHosts(const TypedOptions& typed, const FrontWorld& world, RunOptions* run) {
  run->np = typed.np;
  run->is_local_host = [world](const HostSlots& host) { return IsLocalHost(host, world); };
  absl::Status status;
  if (IsAdoption(world)) {
    status = TakeAdoption(typed, world, run);
    if (status.ok()) status = PlaceRanks(run);
  } else if (run->elastic.has_value() && !run->elastic->discovery_script.empty()) {
    status = AwaitHosts(run);
  } else {
    status = ChooseHosts(typed, world, run);
    if (status.ok()) status = MergeNames(run);
    if (status.ok()) status = PlaceRanks(run);
  }
  if (!status.ok() || run->stdin_rank < run->np) return status;
  return absl::InvalidArgumentError(absl::StrCat(
      "--stdin ", run->stdin_rank, ": the last rank of -np ", run->np, " is ", run->np - 1));
}

absl::Status ResolvePaths(const FrontWorld& world, RunOptions* run) {
  if (world.directory.empty()) {
    return absl::InvalidArgumentError(
        "the working directory is gone (deleted or renamed away, or its file system is); cd to one "
        "that is there");
  }
  run->directory = world.directory;
  run->output_directory = Absolute(run->output_directory, world);
  run->files_here = run->compat_horovod && !run->output_directory.empty();
  run->prefix = Absolute(run->prefix, world);
  run->ssh_identity = Absolute(run->ssh_identity, world);
  if (run->ssh_identity.empty() || world.file_exists(run->ssh_identity)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--ssh-identity-file: there is no file ", Printable(run->ssh_identity)));
}

// Reads those of the workers' settings that hvdrun and hvdd carry out.
absl::Status ReadSettings(const FrontWorld& world, RunOptions* run) {
  const absl::StatusOr<SettingValues> settings = SettingValues::Read(run->environment);
  if (!settings.ok()) return settings.status();
  const std::string& timeline = settings->Text(SettingId::kTimeline);
  if (timeline != "DYNAMIC") run->timeline_path = Absolute(timeline, world);
  if (!run->grace_is_given && settings->IsSet(SettingId::kGrace)) {
    run->grace_s = settings->Number(SettingId::kGrace);
    run->grace_is_given = true;
  }
  if (settings->Flag(SettingId::kStallCheckDisable)) return absl::OkStatus();
  run->stall_warn_s = settings->Number(SettingId::kStallWarn);
  run->stall_abort_s = settings->Number(SettingId::kStallAbort);
  return absl::OkStatus();
}

// -x is the person's own word about the GPUs.
absl::Status ChooseGpus(RunOptions* run) {
  constexpr const char* kVisible = "CUDA_VISIBLE_DEVICES";
  const std::vector<std::string>& own = run->own_environment;
  if (std::find(own.begin(), own.end(), kVisible) == own.end()) return absl::OkStatus();
  const int per_rank = run->gpus_per_rank.value_or(0);
  run->gpus_per_rank = 0;
  if (per_rank == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--gpus-per-rank ", per_rank,
                                                 " gives each rank a ", kVisible,
                                                 " of its own, and so does -x; keep one of them"));
}

}  // namespace

absl::StatusOr<RunOptions> PlanRun(const TypedOptions& typed, const FrontWorld& world) {
  RunOptions run = typed.run;
  absl::Status status = PlanHosts(typed, world, &run);
  if (status.ok()) status = ResolvePaths(world, &run);
  if (!status.ok()) return status;
  absl::StatusOr<SentEnvironment> chosen = ChooseEnvironment(world.environment, typed.forwarded);
  if (!chosen.ok()) return chosen.status();
  run.environment = std::move(chosen->environment);
  run.own_environment = std::move(chosen->own);
  status = ChooseGpus(&run);
  if (!status.ok()) return status;
  if (run.compat_horovod) status = AddPythonHook(world, &run);
  if (status.ok()) status = ReadSettings(world, &run);
  if (!status.ok()) return status;
  return run;
}

}  // namespace hvd::cli
