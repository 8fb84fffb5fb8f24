// SPDX-License-Identifier: Apache-2.0
#include "daemon/job/worker_environment.h"

#include <algorithm>
#include <array>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hvd::daemon {
namespace {

using Values = std::map<std::string, std::string>;

constexpr std::array<std::string_view, 9> kHostNames = {
    "HOME",     "USER",   "SHELL",
    "LOGNAME",  "TMPDIR", "DISPLAY",
    "HOSTNAME", "MAIL",   "CUDA_VISIBLE_DEVICES"};

// An inner hvdrun must not take the outer job's identity for its own.
bool IsIdentity(std::string_view name) {
  static constexpr std::array<std::string_view, 11> kNames = {
      "RANK",     "SIZE", "LOCAL_RANK", "LOCAL_SIZE",  "CROSS_RANK", "CROSS_SIZE",
      "HOSTNAME", "LINK", "JOB_MARK",   "MEMBER_MARK", "ELASTIC"};
  for (const std::string_view prefix : {"HVD_", "HOROVOD_"}) {
    if (name.substr(0, prefix.size()) != prefix) continue;
    return std::find(kNames.begin(), kNames.end(), name.substr(prefix.size())) != kNames.end();
  }
  return false;
}

template <class Keep>
void Add(const std::vector<std::string>& entries, Keep keep, Values* values) {
  for (const std::string& entry : entries) {
    const size_t equals = entry.find('=');
    if (equals == std::string::npos || equals == 0) continue;
    const std::string name = entry.substr(0, equals);
    if (keep(name)) (*values)[name] = entry.substr(equals + 1);
  }
}

// As torchrun does, for programs that look there. No MASTER_PORT: there is none, and a made-up one
// would be somebody else's.
void AddTorchIdentity(const WorkerEnvironment& in, Values* values) {
  const RankPlace& place = in.place;
  for (const char* rank : {"RANK", "ROLE_RANK"}) (*values)[rank] = absl::StrCat(place.rank);
  for (const char* size : {"WORLD_SIZE", "ROLE_WORLD_SIZE"}) {
    (*values)[size] = absl::StrCat(in.size);
  }
  (*values)["LOCAL_RANK"] = absl::StrCat(place.local_rank);
  (*values)["LOCAL_WORLD_SIZE"] = absl::StrCat(place.local_size);
  (*values)["GROUP_RANK"] = absl::StrCat(place.host);
  (*values)["GROUP_WORLD_SIZE"] = absl::StrCat(in.hosts);
  // These the user may have set.
  values->emplace("ROLE_NAME", "default");
  values->emplace("MASTER_ADDR", in.first_host);
  values->emplace("TORCHELASTIC_RUN_ID", in.job);
  values->emplace("TORCHELASTIC_RESTART_COUNT", "0");
  values->emplace("TORCHELASTIC_MAX_RESTARTS", "0");
}

void AddIdentity(const WorkerEnvironment& in, Values* values) {
  const RankPlace& place = in.place;
  for (const std::string prefix : {"HVD_", "HOROVOD_"}) {
    (*values)[prefix + "RANK"] = absl::StrCat(place.rank);
    (*values)[prefix + "SIZE"] = absl::StrCat(in.size);
    (*values)[prefix + "LOCAL_RANK"] = absl::StrCat(place.local_rank);
    (*values)[prefix + "LOCAL_SIZE"] = absl::StrCat(place.local_size);
    (*values)[prefix + "CROSS_RANK"] = absl::StrCat(place.cross_rank);
    (*values)[prefix + "CROSS_SIZE"] = absl::StrCat(place.cross_size);
    (*values)[prefix + "HOSTNAME"] = in.host_name;
  }
  AddTorchIdentity(in, values);
  (*values)["HVD_LINK"] = in.link;
  (*values)["HVD_JOB_MARK"] = in.job;
  if (in.member != 0) {
    (*values)["HVD_ELASTIC"] = (*values)["HOROVOD_ELASTIC"] = "1";
    (*values)["HVD_MEMBER_MARK"] = absl::StrCat(in.job, ".", in.member);
  }
  if (in.host_cores > 0) (*values)["HVD_HOST_CORES"] = absl::StrCat(in.host_cores);
}

}  // namespace

bool BelongsToHost(std::string_view name) {
  return name.substr(0, 4) == "XDG_" || name.substr(0, 4) == "SSH_" ||
         std::find(kHostNames.begin(), kHostNames.end(), name) != kHostNames.end();
}

std::vector<std::string> BuildEnvironment(const WorkerEnvironment& in) {
  const auto is_own = [&in](const std::string& name) {
    return std::find(in.own.begin(), in.own.end(), name) != in.own.end();
  };
  Values values;
  Add(in.host, BelongsToHost, &values);
  Add(
      in.launcher,
      [&](const std::string& name) {
        return !IsIdentity(name) && (!BelongsToHost(name) || is_own(name));
      },
      &values);
  values.emplace("PYTHONUNBUFFERED", "1");
  if (!in.gpu_uuids.empty() && !is_own("CUDA_VISIBLE_DEVICES")) {
    values["CUDA_VISIBLE_DEVICES"] = absl::StrJoin(in.gpu_uuids, ",");
    values.emplace("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
  }
  AddIdentity(in, &values);
  std::vector<std::string> environment;
  for (const auto& [name, value] : values) environment.push_back(absl::StrCat(name, "=", value));
  return environment;
}

}  // namespace hvd::daemon
