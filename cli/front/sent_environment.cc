// SPDX-License-Identifier: Apache-2.0
#include "cli/front/sent_environment.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "base/source_error.h"

namespace hvd::cli {
namespace {

// These stay the host's own.
constexpr std::array kOfTheHost = {
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "MAIL",
    "XDG_*",
    "SSH_*",
    "TMPDIR",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "DBUS_SESSION_BUS_ADDRESS",
    "OLDPWD",
    "HOSTNAME",
    "WINDOWID",
    "SESSION_MANAGER",
    "TMUX",
    "TMUX_PANE",
    "STY",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "NOTIFY_SOCKET",
};

// The variables that tell a process of a launcher who it is: a worker that found an outer
// launcher's would believe them. hvdd gives each worker its own.
constexpr std::array kOfALauncher = {
    "HVD_ADOPTION",
    "HVD_HOSTFILE",
    "HVD_PYTHON",
    "HVD_CONTAINMENT",
    "HVD_CUDA_VISIBLE_DEVICES",
    "PMI_*",
    "PMIX_*",
    "OMPI_COMM_WORLD_*",
    "OMPI_UNIVERSE_SIZE",
    "SLURM_PROCID",
    "SLURM_LOCALID",
    "SLURM_NODEID",
    "SLURM_TASK_PID",
    "SLURM_STEP*",
    "TORCHELASTIC_*",
    "ROLE_NAME",
    "MPI_LOCAL*",
};

// hvdd sets these for each worker; -x must not.
constexpr std::array kOfTheWorker = {
    "HVD_LINK",           "HVD_JOB_MARK",       "HVD_MEMBER_MARK",    "HVD_ELASTIC",
    "HOROVOD_ELASTIC",    "HVD_RANK",           "HVD_SIZE",           "HVD_LOCAL_RANK",
    "HVD_LOCAL_SIZE",     "HVD_CROSS_RANK",     "HVD_CROSS_SIZE",     "HVD_HOSTNAME",
    "HOROVOD_RANK",       "HOROVOD_SIZE",       "HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE",
    "HOROVOD_CROSS_RANK", "HOROVOD_CROSS_SIZE", "HOROVOD_HOSTNAME",   "RANK",
    "WORLD_SIZE",         "LOCAL_RANK",         "LOCAL_WORLD_SIZE",   "ROLE_RANK",
    "ROLE_WORLD_SIZE",    "GROUP_RANK",         "GROUP_WORLD_SIZE",
};

template <class Patterns>
bool MatchesAny(const std::string& name, const Patterns& patterns) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const char* pattern) { return fnmatch(pattern, name.c_str(), 0) == 0; });
}

using Variables = std::map<std::string, std::string>;

Variables Split(absl::Span<const std::string> entries) {
  Variables variables;
  for (const std::string& entry : entries) {
    const size_t equals = entry.find('=');
    if (equals == 0 || equals == std::string::npos) continue;
    // As getenv does, the first of equals counts.
    variables.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return variables;
}

absl::Status CheckName(const std::string& name) {
  const bool printable = std::all_of(name.begin(), name.end(),
                                     [](unsigned char byte) { return byte > ' ' && byte != 0x7F; });
  if (name.empty() || !printable) {
    return absl::InvalidArgumentError(
        absl::StrCat("-x: ", Quoted(name), " is not a variable's name; write NAME or NAME=VALUE"));
  }
  if (MatchesAny(name, kOfTheWorker)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "-x ", Printable(name), ": hvdrun gives each worker its own ", Printable(name)));
  }
  return absl::OkStatus();
}

void AddGlob(const std::string& glob, const Variables& here, Variables* own) {
  for (const auto& [name, value] : here) {
    const bool wanted = fnmatch(glob.c_str(), name.c_str(), 0) == 0;
    if (wanted && !MatchesAny(name, kOfTheWorker)) (*own)[name] = value;
  }
}

absl::Status AddWish(const std::string& wish, const Variables& here, Variables* own) {
  const size_t equals = wish.find('=');
  const std::string name = wish.substr(0, equals);
  if (equals == std::string::npos && name.find_first_of("*?") != std::string::npos) {
    AddGlob(name, here, own);
    return absl::OkStatus();
  }
  if (absl::Status status = CheckName(name); !status.ok()) return status;
  if (equals != std::string::npos) {
    (*own)[name] = wish.substr(equals + 1);
    return absl::OkStatus();
  }
  const auto found = here.find(name);
  if (found == here.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "-x ", Printable(name), ": it is not set here; write -x ", Printable(name), "=VALUE"));
  }
  (*own)[name] = found->second;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SentEnvironment> ChooseEnvironment(absl::Span<const std::string> inherited,
                                                  absl::Span<const std::string> wishes) {
  const Variables here = Split(inherited);
  Variables own;
  for (const std::string& wish : wishes) {
    if (absl::Status status = AddWish(wish, here, &own); !status.ok()) return status;
  }
  const bool inner = here.count("HVD_JOB_MARK") > 0;  // a worker's: the outer job's first host
  Variables all = own;
  for (const auto& [name, value] : here) {
    const bool stays = MatchesAny(name, kOfTheHost) || MatchesAny(name, kOfALauncher) ||
                       MatchesAny(name, kOfTheWorker) || (inner && name == "MASTER_ADDR");
    if (!stays) all.emplace(name, value);
  }
  SentEnvironment chosen;
  for (const auto& [name, value] : all)
    chosen.environment.push_back(absl::StrCat(name, "=", value));
  for (const auto& [name, value] : own) chosen.own.push_back(name);
  return chosen;
}

}  // namespace hvd::cli
