// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/tuning/config.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "base/source_error.h"
#include "proto/settings/setting_values.h"
#include "runtime/session/identity.h"

namespace hvd::rt {
namespace {

using Id = SettingId;

// As getenv: the first of equals counts.
const char* Find(absl::Span<const std::string> environment, const char* name) {
  const size_t length = strlen(name);
  for (const std::string& entry : environment) {
    if (absl::StartsWith(entry, name) && entry[length] == '=') return entry.c_str() + length + 1;
  }
  return nullptr;
}

absl::Status ReadHostCores(const char* cores, int* field) {
  if (cores == nullptr) return absl::OkStatus();
  const auto [end, error] = std::from_chars(cores, cores + strlen(cores), *field);
  if (error == std::errc() && *end == 0 && *field >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(std::string("HVD_HOST_CORES is ") + Quoted(cores) +
                                    "; it must be a number of cores, at least 1");
}

// "CLIENT PORT SERVER PORT", as sshd sets it; anything else counts as nothing.
void TakeRemoteShell(const char* connection, EngineConfig* config) {
  if (connection == nullptr) return;
  const std::vector<std::string> words = absl::StrSplit(connection, ' ');
  if (words.size() != 4) return;
  config->reached_from = words[0];
  config->reached_at = words[2];
}

int64_t Whole(const SettingValues& values, Id id) {
  return static_cast<int64_t>(values.Number(id));
}

void TakeAlgorithms(const SettingValues& values, EngineConfig* config) {
  config->fusion_threshold = Whole(values, Id::kFusionThreshold);
  config->disable_group_fusion = values.Flag(Id::kDisableGroupFusion);
  config->batch_wait_us = Whole(values, Id::kBatchWait);
  config->bucket_bytes = Whole(values, Id::kBucketBytes);
  config->dynamic_process_sets = values.Flag(Id::kDynamicProcessSets);
  config->max_pending = static_cast<uint32_t>(Whole(values, Id::kMaxPending));
  const auto bytes = [&values](Id id, size_t* field) {
    if (values.IsSet(id)) *field = static_cast<size_t>(values.Number(id));
  };
  HierarchicalThresholds& thresholds = config->thresholds;
  bytes(Id::kOneShotBytes, &thresholds.host.one_shot_bytes);
  bytes(Id::kPieceBytes, &thresholds.host.staged_piece_bytes);
  thresholds.host.peer_reads.least_bytes = static_cast<size_t>(Whole(values, Id::kPeerReadBytes));
  bytes(Id::kRailsBytes, &thresholds.rails_bytes);
  bytes(Id::kRingBytes, &thresholds.message.ring_bytes);
  bytes(Id::kSegmentBytes, &thresholds.message.segment_bytes);
  thresholds.message.deterministic = values.Flag(Id::kDeterministic);
}

void TakeWatching(const SettingValues& values, EngineConfig* config) {
  config->timeline = values.Text(Id::kTimeline);
  config->log_level = static_cast<LogLevel>(Whole(values, Id::kLogLevel));
  config->autotune = values.Flag(Id::kAutotune);
  config->autotune_log = values.Text(Id::kAutotuneLog);
  config->autotune_file = values.Text(Id::kAutotuneFile);
  config->autotune_warmup = static_cast<int>(values.Number(Id::kAutotuneWarmup));
  config->autotune_steps = static_cast<int>(values.Number(Id::kAutotuneSteps));
  config->autotune_samples = static_cast<int>(values.Number(Id::kAutotuneSamples));
}

// Returns the value that counts where nothing is set, for a setting whose default the algorithms
// have.
double MeasuredDefault(Id id) {
  const HierarchicalThresholds measured;
  switch (id) {
    case Id::kOneShotBytes:
      return static_cast<double>(measured.host.one_shot_bytes);
    case Id::kPieceBytes:
      return static_cast<double>(measured.host.staged_piece_bytes);
    case Id::kRailsBytes:
      return static_cast<double>(measured.rails_bytes);
    case Id::kRingBytes:
      return static_cast<double>(measured.message.ring_bytes);
    case Id::kSegmentBytes:
      return static_cast<double>(measured.message.segment_bytes);
    default:
      return 0;
  }
}

// Returns the terms of the values that count, whether they are set or not.
std::vector<Term> TermsOf(const SettingValues& values) {
  std::vector<Term> terms;
  for (const Setting& setting : Settings()) {
    if (ScopeOf(setting.id) != SettingScope::kJob) continue;
    const bool measured = setting.fallback == nullptr && !values.IsSet(setting.id);
    terms.push_back(
        {setting.name,
         measured ? ShowNumber(setting.kind, MeasuredDefault(setting.id)) : values.Show(setting.id),
         std::string("set it alike, for instance with hvdrun -x ") + setting.name});
  }
  return terms;
}

}  // namespace

absl::StatusOr<EngineConfig> MakeConfig(absl::Span<const std::string> environment) {
  const auto lookup = [environment](const char* name) { return Find(environment, name); };
  EngineConfig config;
  auto link = FindLink(lookup);
  if (!link.ok()) return link.status();
  config.link = *link;
  absl::Status status = ReadHostCores(lookup("HVD_HOST_CORES"), &config.host_cores);
  if (!status.ok()) return status;
  const auto values = SettingValues::Read(environment);
  if (!values.ok()) return values.status();
  TakeAlgorithms(*values, &config);
  TakeWatching(*values, &config);
  config.set = values->Describe();
  config.doubts = values->warnings();
  config.terms = TermsOf(*values);
  const auto text = [&](const char* name) {
    const char* value = lookup(name);
    return std::string(value != nullptr ? value : "");
  };
  config.net_devices = values->Text(Id::kNetDevices);
  if (config.net_devices.empty()) config.net_devices = text("UCX_NET_DEVICES");
  TakeRemoteShell(lookup("SSH_CONNECTION"), &config);
  if (Whole(*values, Id::kTransport) != 0) config.transport = values->Text(Id::kTransport);
  config.gpu_operations =
      static_cast<EngineConfig::GpuOperations>(Whole(*values, Id::kGpuOperations));
  config.nccl_library = values->Text(Id::kNcclLibrary);
  config.nccl_shares_gpus =
      text("NCCL_MULTI_RANK_GPU_ENABLE") == "1" || !text("NCCL_HOSTID").empty();
  config.tls = text("UCX_TLS");
  config.ucx_log_level = text("UCX_LOG_LEVEL");
  return config;
}

std::vector<std::string> ReadEnvironment() {
  std::vector<std::string> environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    environment.emplace_back(*entry);
  }
  return environment;
}

absl::StatusOr<EngineConfig> ReadConfig(absl::Span<const std::string> adopted) {
  std::vector<std::string> environment(adopted.begin(), adopted.end());
  for (std::string& entry : ReadEnvironment()) environment.push_back(std::move(entry));
  return MakeConfig(environment);
}

std::string ReadNcclLibrary() {
  const char* path = getenv("HVD_NCCL_LIBRARY");
  return path != nullptr ? path : "";
}

absl::StatusOr<std::optional<LinkName>> ReadLink(absl::Span<const std::string> adopted) {
  return FindLink([adopted](const char* name) {
    const char* const given = Find(adopted, name);
    return given != nullptr ? given : getenv(name);
  });
}

void SaySettings(const EngineConfig& config) {
  if (config.log_level <= LogLevel::kWarning && !config.link) {
    for (const std::string& line : config.doubts) fprintf(stderr, "hvd: %s\n", line.c_str());
  }
  if (config.log_level > LogLevel::kInfo) return;
  for (const std::string& line : config.set) fprintf(stderr, "hvd: setting %s\n", line.c_str());
}

}  // namespace hvd::rt
