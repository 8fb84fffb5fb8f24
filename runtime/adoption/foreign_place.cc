// SPDX-License-Identifier: Apache-2.0
#include "runtime/adoption/foreign_place.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "hostfile/host_slots.h"
#include "hostfile/slurm_shape.h"
#include "proto/hmac_sha256.h"
#include "proto/settings/foreign_launcher.h"

namespace hvd::rt {
namespace {

// A launcher's names of the four numbers that every rank needs.
struct Names {
  const char *rank, *size, *local_rank, *local_size;
};

constexpr Names kOpenMpi = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                            "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr Names kHydra = {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"};
constexpr Names kTorch = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};

// Why its processes cannot be joined; FindForeignPlace says whose they are, and what to do.
absl::Status Wrong(absl::string_view what) { return absl::FailedPreconditionError(what); }

absl::Status Refuse(const ForeignLauncher& launcher, const absl::Status& why) {
  const std::string count = launcher.size > 0 ? absl::StrCat(launcher.size) : "N";
  return absl::FailedPreconditionError(absl::StrCat(
      launcher.name, " has started this process as one of ", launcher.size > 0 ? count : "several",
      " (", launcher.evidence, "), which hvd cannot make a job of: ", why.message(),
      ". Start the program by hvdrun: hvdrun -np ", count,
      " PROGRAM. If each is to train by itself, set HVD_STANDALONE=1 to run alone"));
}

absl::Status ReadNumber(const EnvironmentLookup& environment, const char* name, int* number) {
  const char* const text = environment(name);
  if (text == nullptr) return Wrong(absl::StrCat(name, " is not set"));
  const char* const end = text + strlen(text);
  const auto read = std::from_chars(text, end, *number);
  if (read.ec == std::errc() && read.ptr == end && *number >= 0) return absl::OkStatus();
  return Wrong(absl::StrCat(name, " is ", Printable(text, 100)));
}

absl::Status ReadNumbers(const EnvironmentLookup& environment, const Names& names,
                         ForeignPlace* place) {
  absl::Status status = ReadNumber(environment, names.rank, &place->rank);
  status.Update(ReadNumber(environment, names.size, &place->size));
  status.Update(ReadNumber(environment, names.local_rank, &place->local_rank));
  status.Update(ReadNumber(environment, names.local_size, &place->local_size));
  if (!status.ok()) return status;
  const bool fits = place->rank < place->size && place->local_rank < place->local_size &&
                    place->local_size <= place->size;
  if (fits) return absl::OkStatus();
  return Wrong(absl::StrCat(names.rank, "=", place->rank, ", ", names.size, "=", place->size, ", ",
                            names.local_rank, "=", place->local_rank, " and ", names.local_size,
                            "=", place->local_size, " do not fit together"));
}

std::string Text(const EnvironmentLookup& environment, const char* name) {
  const char* const text = environment(name);
  return text == nullptr ? "" : text;
}

bool OnOneHost(const ForeignPlace& place) { return place.local_size == place.size; }

// Without a word between processes: where all lie on one host, all know the launcher's job.
void MeetHere(std::string job, ForeignPlace* place) {
  place->store = ForeignStore::kNone;
  place->job = std::move(job);
  place->hosts = {{"", place->size}};
}

absl::Status ReadMpirun(const EnvironmentLookup& environment, ForeignPlace* place) {
  if (absl::Status read = ReadNumbers(environment, kOpenMpi, place); !read.ok()) return read;
  const std::string space = Text(environment, "PMIX_NAMESPACE");
  if (space.empty()) return Wrong("PMIX_NAMESPACE is not set");
  place->store = ForeignStore::kPmix;
  if (OnOneHost(*place)) MeetHere(space, place);
  return absl::OkStatus();
}

absl::Status ReadHydra(const EnvironmentLookup& environment, const AncestorLookup& ancestor,
                       ForeignPlace* place) {
  if (absl::Status read = ReadNumbers(environment, kHydra, place); !read.ok()) return read;
  // PMI's wire is for one program, and better left to MPI where it is not needed.
  const std::string proxy = OnOneHost(*place) ? ancestor("hydra_pmi_proxy") : "";
  if (!proxy.empty()) {
    MeetHere(absl::StrCat("hydra ", proxy), place);
    return absl::OkStatus();
  }
  if (Text(environment, "PMI_FD").empty()) return Wrong("PMI_FD is not set");
  place->store = ForeignStore::kPmi1;
  return absl::OkStatus();
}

absl::Status ReadTorchrun(const EnvironmentLookup& environment, ForeignPlace* place) {
  if (absl::Status read = ReadNumbers(environment, kTorch, place); !read.ok()) return read;
  const std::string port = Text(environment, "MASTER_PORT");
  if (port.empty() || Text(environment, "MASTER_ADDR").empty()) {
    return Wrong("MASTER_ADDR and MASTER_PORT are not both set");
  }
  place->store = ForeignStore::kTorch;
  // A restart of torchrun's is another job: those that were before may not be gone yet.
  if (OnOneHost(*place)) {
    MeetHere(absl::StrCat("torchrun ", port, " ", Text(environment, "TORCHELASTIC_RUN_ID"), " ",
                          Text(environment, "TORCHELASTIC_RESTART_COUNT")),
             place);
    return absl::OkStatus();
  }
  if (Text(environment, "TORCHELASTIC_USE_AGENT_STORE") == "True") return absl::OkStatus();
  return Wrong("there is no store of torchrun's (TORCHELASTIC_USE_AGENT_STORE)");
}

absl::StatusOr<std::vector<HostShape>> StepHosts(const EnvironmentLookup& environment) {
  auto names = ParseHostList(Text(environment, "SLURM_STEP_NODELIST"), "$SLURM_STEP_NODELIST");
  if (!names.ok()) return names.status();
  constexpr const char* kShape = "SLURM_STEP_TASKS_PER_NODE";
  auto tasks = ParseTasksPerNode(Text(environment, kShape), kShape);
  if (!tasks.ok()) return tasks.status();
  if (tasks->size() != names->size()) {
    return absl::InvalidArgumentError("SLURM_STEP_NODELIST and SLURM_STEP_TASKS_PER_NODE differ");
  }
  std::vector<HostShape> hosts;
  for (size_t i = 0; i < names->size(); ++i) hosts.push_back({(*names)[i].name, (*tasks)[i]});
  return hosts;
}

// How many tasks a node gets in its turn. 0: all of its tasks; nothing: srun's rule has no name.
std::optional<int> TasksATurn(const EnvironmentLookup& environment) {
  const std::string how = Text(environment, "SLURM_DISTRIBUTION");
  if (absl::StartsWith(how, "cyclic")) return 1;
  if (absl::StartsWith(how, "arbitrary")) return std::nullopt;
  int tasks = 0;
  if (absl::StartsWith(how, "plane")) {
    const bool told = ReadNumber(environment, "SLURM_DIST_PLANESIZE", &tasks).ok() && tasks > 0;
    return told ? std::optional<int>(tasks) : std::nullopt;
  }
  return 0;
}

// Gives the hosts' ranks their numbers, as srun does.
void NumberInTurn(int tasks_a_turn, ForeignPlace* place) {
  std::vector<std::string> names;
  std::vector<int> left, host_of_rank;
  for (const HostShape& host : place->hosts) {
    names.push_back(host.name);
    left.push_back(host.ranks);
  }
  while (static_cast<int>(host_of_rank.size()) < place->size) {
    for (size_t host = 0; host < left.size(); ++host) {
      const int tasks = std::min(left[host], tasks_a_turn);
      host_of_rank.insert(host_of_rank.end(), tasks, static_cast<int>(host));
      left[host] -= tasks;
    }
  }
  place->hosts = Topology::Numbered(names, host_of_rank).hosts();
}

absl::Status NumberTasks(const EnvironmentLookup& environment, int node, ForeignPlace* place) {
  const std::optional<int> turn = TasksATurn(environment);
  if (turn.value_or(0) > 0) NumberInTurn(*turn, place);
  const Topology topology(place->hosts);
  if (turn.has_value() && topology.place(place->rank).host == node &&
      topology.place(place->rank).local_rank == place->local_rank) {
    return absl::OkStatus();
  }
  const std::string how = Text(environment, "SLURM_DISTRIBUTION");
  return Wrong(absl::StrCat(
      "it numbers them over the hosts in an order that its variables don't "
      "tell (",
      how.empty() ? "SLURM_PROCID" : "-m " + how, "): use srun -m block, cyclic or plane"));
}

absl::Status ReadSrun(const EnvironmentLookup& environment, ForeignPlace* place) {
  int node = 0;
  absl::Status status = ReadNumber(environment, "SLURM_PROCID", &place->rank);
  status.Update(ReadNumber(environment, "SLURM_LOCALID", &place->local_rank));
  status.Update(ReadNumber(environment, "SLURM_NODEID", &node));
  if (!status.ok()) return status;
  auto hosts = StepHosts(environment);
  if (!hosts.ok()) return Wrong(hosts.status().message());
  place->hosts = *std::move(hosts);
  if (node >= static_cast<int>(place->hosts.size())) return Wrong("its node is not told");
  for (const HostShape& host : place->hosts) place->size += host.ranks;
  place->local_size = place->hosts[node].ranks;
  place->job = absl::StrCat("slurm ", Text(environment, "SLURM_JOB_ID"), ".",
                            Text(environment, "SLURM_STEP_ID"));
  if (place->rank >= place->size) return Wrong("SLURM_PROCID is more than the step has tasks");
  return NumberTasks(environment, node, place);
}

}  // namespace

absl::StatusOr<std::optional<ForeignPlace>> FindForeignPlace(const EnvironmentLookup& environment,
                                                             const AncestorLookup& ancestor) {
  const absl::StatusOr<bool> alone = IsMeantAlone(environment);
  if (!alone.ok()) return alone.status();
  const bool ours = environment("HVD_LINK") != nullptr || environment("HVD_RANK") != nullptr;
  if (*alone || ours) return std::optional<ForeignPlace>();
  const auto launcher = FindForeignLauncher(environment);
  if (!launcher.has_value()) return std::optional<ForeignPlace>();
  ForeignPlace place;
  place.by = launcher->name;
  absl::Status read;
  if (launcher->name == "mpirun") {
    read = ReadMpirun(environment, &place);
  } else if (launcher->name == "srun") {
    read = ReadSrun(environment, &place);
  } else if (launcher->name == "mpiexec") {
    read = ReadHydra(environment, ancestor, &place);
  } else if (launcher->name == "torchrun") {
    read = ReadTorchrun(environment, &place);
  } else {
    return std::optional<ForeignPlace>();
  }
  if (!read.ok()) return Refuse(*launcher, read);
  return std::optional<ForeignPlace>(std::move(place));
}

std::string ClaimKeyOf(const ForeignPlace& place) {
  const Sha256Digest digest = Sha256(absl::StrCat(place.by, " ", place.job));
  return absl::BytesToHexString(std::string(AsText(digest)).substr(0, 12));
}

}  // namespace hvd::rt
