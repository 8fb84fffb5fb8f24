// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/ways/devices.h"

#include <utility>

#include "runtime/device/nccl/nccl_way.h"
#include "runtime/gpu/found.h"

namespace hvd::rt {

HostWay& Devices::host_way() {
  if (HostWay* const used = used_host_way(); used != nullptr) return *used;
  const MutexLock lock(&host_way_mutex_);
  if (host_way_ == nullptr) {
    host_way_ = std::make_unique<HostWay>(parts_.sets, &gpus_, parts_.arena, parts_.free_result);
    used_host_way_.store(host_way_.get(), std::memory_order_release);
  }
  return *host_way_;
}

void Devices::BeginEpoch(const EngineConfig& config, const std::string& libhvd) {
  nccl_.Begin({{config.nccl_library, NcclBeside(libhvd)}, config.nccl_shares_gpus});
}

SetDevice Devices::MakeWork(const EngineConfig& config, EpochWorld* set) {
  NcclWayParts parts;
  parts.decision.world = set;
  parts.decision.process = &nccl_;
  parts.decision.gpus = &gpus_;
  parts.decision.operations = config.gpu_operations;
  parts.decision.sets = [this] { return parts_.sets->member_count(); };
  parts.decision.says_way = config.log_level <= LogLevel::kInfo;
  parts.decision.says_fallback = config.log_level <= LogLevel::kWarning;
  parts.allocate_result = parts_.allocate_result;
  parts.free_result = parts_.free_result;
  auto way = std::make_unique<NcclWay>(parts);
  NcclWay* const route = way.get();
  return {std::move(way), route};
}

void Devices::EndCalls() {
  if (HostWay* const way = used_host_way(); way != nullptr) way->EndEpoch();
}

void Devices::EndEpoch() {
  nccl_.EndEpoch();
  gpus_.Close();
}

}  // namespace hvd::rt
