// SPDX-License-Identifier: Apache-2.0
// All that libhvd reads from the environment, read once at hvd_init. The only getenv of the
// runtime. Names, units and ranges are in proto/settings/settings.cc; the defaults must be the same
// there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/hello.h"
#include "runtime/collective/hierarchical/hierarchical_collectives.h"
#include "runtime/engine/tuning/terms.h"

namespace hvd::rt {

enum class LogLevel { kTrace, kDebug, kInfo, kWarning, kError, kFatal };

struct EngineConfig {
  std::optional<LinkName> link;  // nothing: a job of one rank
  int host_cores = 0;            // cores that the ranks of this host share; 0: not said, count them
  std::string transport;         // "tcp", "ucx"; empty: chosen
  // HVD_NET_DEVICES, else UCX_NET_DEVICES; UCX_TLS; UCX_LOG_LEVEL. Empty: chosen.
  std::string net_devices, tls, ucx_log_level;
  // SSH_CONNECTION's addresses: the other end's, and this host's. Empty: no ssh has come here.
  std::string reached_from, reached_at;

  // Settings for tensors on GPUs.
  enum class GpuOperations { kAuto, kNccl, kHost };
  GpuOperations gpu_operations = GpuOperations::kAuto;
  std::string nccl_library;       // a path; empty: looked for
  bool nccl_shares_gpus = false;  // NCCL has been told that ranks may share a GPU

  // Batches and fusion.
  int64_t fusion_threshold = 64 << 20;  // bytes; 0: each tensor alone
  bool disable_group_fusion = false;
  int64_t batch_wait_us = 50;  // how long a batch that nobody waits for stays open
  bool dynamic_process_sets = true;
  uint32_t max_pending = 1u << 20;  // tensors of a process set that a host may have pending at once
  int64_t bucket_bytes = 25 << 20;  // of a gradient bucket's tensors that travel together

  // Thresholds of the algorithms; one that is not set stays as the collectives measured it.
  HierarchicalThresholds thresholds;

  // Seeing inside. (Stalls are hvdrun's to find: it reads those settings.)
  std::string timeline;  // a path, or DYNAMIC; empty: none
  LogLevel log_level = LogLevel::kWarning;
  // The settings that are set and where they came from, and names that look misspelt; a line each.
  std::vector<std::string> set, doubts;

  // The part of all this that every rank must have alike.
  std::vector<Term> terms;

  bool autotune = false;
  std::string autotune_log, autotune_file;  // empty: none
  int autotune_warmup = 3;                  // samples thrown away
  int autotune_steps = 10;                  // batches of one sample
  int autotune_samples = 40;                // at most
};

// Entries NAME=VALUE. InvalidArgument names the variable, its value and what is allowed.
absl::StatusOr<EngineConfig> MakeConfig(absl::Span<const std::string> environment);
// Reads the settings of this process's environment, before which `adopted` counts.
absl::StatusOr<EngineConfig> ReadConfig(absl::Span<const std::string> adopted);
// Only where NCCL lies, if it is said.
std::string ReadNcclLibrary();
// Only its link, which may be fine where something else is not.
absl::StatusOr<std::optional<LinkName>> ReadLink(absl::Span<const std::string> adopted);
// This process's, NAME=VALUE.
std::vector<std::string> ReadEnvironment();
// Rank 0 says on stderr what HVD_LOG_LEVEL lets it: `set` for information; `doubts` as a warning,
// unless hvdrun has said them.
void SaySettings(const EngineConfig& config);

}  // namespace hvd::rt
