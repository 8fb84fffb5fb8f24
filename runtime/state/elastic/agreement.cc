// SPDX-License-Identifier: Apache-2.0
#include "runtime/state/elastic/agreement.h"

#include <string>

namespace hvd::rt {

const char kHostsUpdated[] =
    "the members of the job are to change; call hvd_reset, then hvd_state_sync, and go on";

absl::StatusOr<Agreement> Agree(AgreementSide side, const ProcessSets& sets) {
  CallTarget set(sets);
  if (absl::Status chosen = set.Choose(HVD_GLOBAL_PROCESS_SET); !chosen.ok()) {
    return absl::AbortedError("this rank has left the epoch (hvd_shutdown or hvd_reset)");
  }
  side.is_change = set->engine->world().page()->change.load(std::memory_order_acquire) != 0;
  AgreementWords words = WordsOf(side);
  Request request;
  request.name = std::string(kOwnName) + "state";
  request.signature.kind = RequestKind::kAllreduce;
  request.signature.dtype = HVD_INT64;
  request.signature.op = HVD_MAX;
  request.signature.refuses_joined = 1;
  request.signature.ndim = 1;
  request.signature.shape[0] = static_cast<int64_t>(words.size());
  request.buffers.input = words.data();
  request.buffers.output = words.data();
  if (absl::Status run = set->engine->Run(&request); !run.ok()) return run;
  return ReadAgreement(words);
}

}  // namespace hvd::rt
