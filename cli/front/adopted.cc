// SPDX-License-Identifier: Apache-2.0
#include "cli/front/adopted.h"

#include "absl/strings/str_cat.h"
#include "cli/front/allocation.h"
#include "cli/front/words/shell_words.h"

namespace hvd::cli {
namespace {

constexpr const char* kRunOptions = "HVD_RUN_OPTIONS";
constexpr int kSubreaper = 3;  // hvd.v1.Containment: no namespace of hvdd's holds its ranks

absl::Status NotAsWritten() {
  return absl::InvalidArgumentError(absl::StrCat(
      "$", kAdoptionVariable, " is not as hvd writes it; unset it, it is no variable for people"));
}

}  // namespace

bool IsAdoption(const FrontWorld& world) { return !VariableOf(world, kAdoptionVariable).empty(); }

absl::StatusOr<std::vector<std::string>> WithRunOptions(const FrontWorld& world,
                                                        const std::vector<std::string>& args) {
  auto words = SplitShellWords(VariableOf(world, kRunOptions));
  if (!words.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("$", kRunOptions, ": ", words.status().message()));
  }
  words->insert(words->end(), args.begin(), args.end());
  return words;
}

absl::Status CheckRunOptions(const TypedOptions& typed, size_t program_words) {
  if (typed.ask == Ask::kRun && typed.run.command.size() == program_words) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("$", kRunOptions,
                   " has options of a job, as in --output-filename out --timeout 3600; it "
                   "can neither name a program nor ask for help or a version"));
}

absl::Status TakeAdoption(const TypedOptions& typed, const FrontWorld& world, RunOptions* run) {
  run->adoption = ParseAdoption(VariableOf(world, kAdoptionVariable));
  if (!run->adoption.has_value()) return NotAsWritten();
  const Adoption& adoption = *run->adoption;
  const bool places = typed.np != 0 || typed.has_hosts || typed.has_hostfile || run->agent_is_given;
  const bool gives = !run->binds_cores || run->gpus_per_rank.has_value() || run->stdin_rank != 0;
  if (places || gives || run->elastic.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "$", kRunOptions, ": ", adoption.by,
        " has started the ranks already; how many there are, where, that they stay and what they "
        "have is its to say, so leave -np, -H, --hostfile, --rsh-agent, --bind, --gpus-per-rank, "
        "--stdin and options of elastic jobs out"));
  }
  for (const AdoptedHost& adopted : adoption.hosts) {
    HostSlots host;
    host.name = adopted.name;
    host.slots = adopted.ranks;
    host.where = adoption.by;
    run->hosts.push_back(std::move(host));
    run->np += adopted.ranks;
  }
  run->hosts_source = adoption.by;
  const std::string own = adoption.hosts.front().name;
  run->is_local_host = [own](const HostSlots& host) { return host.name == own; };
  // Where no daemon waits, the hosts are a Slurm step's.
  if (adoption.hosts.back().port == 0) run->rsh_agent = "srun";
  // A rank may be late by as much as under MPI, whose init has no limit at all.
  if (!run->waits_for_hosts) run->start_timeout_s = kAdoptionPatienceS;
  run->containment = kSubreaper;
  run->binds_cores = false;
  run->gpus_per_rank = 0;
  run->stdin_rank = -1;
  return absl::OkStatus();
}

absl::StatusOr<Topology> AdoptedTopology(const Adoption& adoption) {
  std::vector<HostShape> hosts;
  hosts.reserve(adoption.hosts.size());
  for (const AdoptedHost& host : adoption.hosts) {
    hosts.push_back({host.name, host.ranks, host.numbers});
  }
  if (!Topology::CheckNumbers(hosts).ok()) return NotAsWritten();
  return Topology(std::move(hosts));
}

}  // namespace hvd::cli
