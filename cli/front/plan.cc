#include "cli/front/plan.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "cli/front/local_host.h"
#include "cli/front/own_names.h"
#include "cli/front/python_hook.h"
#include "cli/front/sent_environment.h"
#include "hostfile/host_item.h"
#include "proto/page/host_page.h"
#include "proto/settings/setting_values.h"

namespace hvd {
namespace {

constexpr const char* kHostfileVariable = "HVD_HOSTFILE";

std::string Variable(const FrontWorld& world, const std::string& name) {
  for (const std::string& entry : world.environment) {
    if (absl::StartsWith(entry, name + "=")) return entry.substr(name.size() + 1);
  }
  return "";
}

absl::Status ReadHostfile(const std::string& path, const FrontWorld& world, RunOptions* run) {
  const absl::StatusOr<std::string> text = world.read_file(path);
  if (!text.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("the hostfile ", text.status().message()));
  }
  absl::StatusOr<std::vector<HostSlots>> hosts = ParseHostfile(*text, path);
  if (!hosts.ok()) return hosts.status();
  run->hosts = *std::move(hosts);
  run->hosts_source = path;
  return absl::OkStatus();
}

absl::Status ChooseHosts(const TypedOptions& typed, const FrontWorld& world, RunOptions* run) {
  if (typed.has_hosts) {
    absl::StatusOr<std::vector<HostSlots>> hosts = ParseHostList(typed.hosts, "-H");
    if (!hosts.ok()) return hosts.status();
    run->hosts = *std::move(hosts);
    run->hosts_source = "-H";
    return absl::OkStatus();
  }
  if (typed.has_hostfile) return ReadHostfile(typed.hostfile, world, run);
  const std::string variable = Variable(world, kHostfileVariable);
  if (!variable.empty()) {
    const absl::Status read = ReadHostfile(variable, world, run);
    if (read.ok()) return read;
    return absl::InvalidArgumentError(
        absl::StrCat(read.message(), "\n  $", kHostfileVariable, " names this file"));
  }
  if (typed.np == 0) {
    return absl::InvalidArgumentError(
        "how many ranks? Give -np N, or hosts with their slots by -H or --hostfile");
  }
  HostSlots host;
  host.name = "localhost";
  host.slots = typed.np;
  run->hosts = {host};
  run->hosts_source = "localhost";
  return absl::OkStatus();
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

absl::Status MergeNames(const FrontWorld& world, RunOptions* run) {
  absl::StatusOr<std::vector<std::string>> merged = MergeOwnNames(world, &run->hosts);
  if (!merged.ok()) return merged.status();
  run->notes.insert(run->notes.end(), merged->begin(), merged->end());
  return absl::OkStatus();
}

absl::Status PlaceRanks(const TypedOptions& typed, const FrontWorld& world, RunOptions* run) {
  int64_t slots = 0;
  for (const HostSlots& host : run->hosts) slots += host.slots;
  run->np = typed.np;
  if (typed.np == 0 && slots > kMaxRanks) {
    return absl::InvalidArgumentError(
        absl::StrCat("the hosts have ", slots, " slots; give -np N, at most ", kMaxRanks));
  }
  if (typed.np == 0) run->np = static_cast<int>(slots);
  absl::StatusOr<Topology> topology = Topology::Place(run->hosts, run->np);
  if (!topology.ok()) return topology.status();
  if (absl::Status fits = CheckRanksOfHosts(*topology); !fits.ok()) return fits;
  run->topology = *std::move(topology);
  // Ranks fill the hosts in order, so the topology's hosts are the first ones of the list.
  run->host_of.assign(run->hosts.begin(), run->hosts.begin() + run->topology.hosts().size());
  for (const HostSlots& host : run->host_of) run->is_local.push_back(IsLocalHost(host, world));
  if (run->stdin_rank < run->np) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--stdin ", run->stdin_rank, ": the last rank of -np ", run->np, " is ", run->np - 1));
}

std::string Absolute(const std::string& path, const FrontWorld& world) {
  if (path.empty()) return path;
  return (std::filesystem::path(world.directory) / path).lexically_normal().string();
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

// Of the workers' settings, those that hvdrun and hvdd carry out.
absl::Status ReadSettings(const FrontWorld& world, RunOptions* run) {
  const absl::StatusOr<SettingValues> settings = SettingValues::Read(run->environment);
  if (!settings.ok()) return settings.status();
  const std::string& timeline = settings->Text(SettingId::kTimeline);
  if (timeline != "DYNAMIC") run->timeline_path = Absolute(timeline, world);
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
  absl::Status status = ChooseHosts(typed, world, &run);
  if (status.ok()) status = MergeNames(world, &run);
  if (status.ok()) status = PlaceRanks(typed, world, &run);
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

}  // namespace hvd
