// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/execution/fusion.h"

#include "runtime/collective/collectives.h"
#include "runtime/engine/request/tensor_bytes.h"

namespace hvd::rt {

namespace {

// Whether a joined rank can take part in it, whatever the tensors' sizes.
bool IsPlain(const Signature& s) {
  if (s.op == HVD_ADASUM) return false;
  return s.op == HVD_SUM || s.op == HVD_AVERAGE || s.op == kAverageOfContributors ||
         s.prescale == 1;
}

bool MayFuse(const LogEntry& entry, const FusionRules& rules) {
  return ReducesPlainly(entry) && (!entry.signature.is_group() || !rules.groups_alone);
}

bool RunTogether(const LogEntry& a, const LogEntry& b, const FusionRules& rules) {
  return a.signature.device_type == b.signature.device_type &&
         a.signature.dtype == b.signature.dtype && a.signature.op == b.signature.op &&
         a.signature.prescale == b.signature.prescale &&
         a.signature.postscale == b.signature.postscale &&
         a.signature.compression == b.signature.compression && a.contributors == b.contributors &&
         (rules.several_hosts || a.host_buffers.empty() == b.host_buffers.empty());
}

struct OpenRun {
  size_t index;  // in the plan
  size_t bytes;
};

}  // namespace

bool ReducesInPlace(const Signature& signature) {
  return signature.kind == RequestKind::kAllreduce && IsPlain(signature) && !signature.is_group() &&
         signature.compression == HVD_COMPRESSION_NONE && signature.device_type == HVD_CPU &&
         !(signature.dtype == HVD_BOOL && signature.op == HVD_AVERAGE);
}

bool ReducesPlainly(const LogEntry& entry) {
  return entry.error.empty() && entry.signature.kind == RequestKind::kAllreduce &&
         IsPlain(entry.signature);
}

std::vector<std::vector<size_t>> PlanFusion(const std::vector<LogEntry>& batch,
                                            const FusionRules& rules) {
  std::vector<std::vector<size_t>> plan;
  std::vector<OpenRun> open;  // one a kind of run
  for (size_t i = 0; i < batch.size(); ++i) {
    const Signature& s = batch[i].signature;
    const size_t bytes = MayFuse(batch[i], rules) ? TensorBytes(s) : 0;
    if (!MayFuse(batch[i], rules) || bytes >= rules.threshold) {
      plan.push_back({i});
      continue;
    }
    OpenRun* run = nullptr;
    for (OpenRun& candidate : open) {
      if (RunTogether(batch[plan[candidate.index][0]], batch[i], rules)) run = &candidate;
    }
    if (run != nullptr && run->bytes + bytes <= rules.threshold) {
      plan[run->index].push_back(i);
      run->bytes += bytes;
      continue;
    }
    plan.push_back({i});
    if (run == nullptr) run = &open.emplace_back();
    *run = {plan.size() - 1, bytes};
  }
  return plan;
}

}  // namespace hvd::rt
