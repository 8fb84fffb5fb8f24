// Requests on one host whose marks say where the tensors lie: in the arenas, or, for a tensor in
// private memory, in its rank's stage. Each rank does its part out of everyone's and says so; when
// all have, it is over for all. Nothing here waits.
#include "runtime/engine/engine.h"
#include "runtime/engine/request/tensor_bytes.h"

namespace hvd {

// One at a time: a rank's stage is free when nothing of its is pending.
bool Engine::MayStage(const Request& request) const {
  if (!request.alone) return false;
  return TensorBytes(request.signature) <= Direct::kStageBytes;
}

// The others see when it is done. FailedPrecondition is of this rank alone (its output does not
// fit); another status breaks the epoch, for they count on this rank.
void Engine::WorkInPlace(LocalName* name) {
  Request& request = *name->pending;
  if (timeline_.on()) name->begin_ns = Timeline::Now();
  at_work_ = name->name;
  absl::Status worked;
  if (request.signature.kind == RequestKind::kAllreduce) {
    worked = SumInPlace(*name);
  } else if (request.signature.kind == RequestKind::kBroadcast) {
    worked = BroadcastInPlace(*name);
  } else {
    worked = FetchInPlace(*name);
  }
  at_work_ = nullptr;
  if (!worked.ok() && !absl::IsFailedPrecondition(worked)) {
    (void)BreakIfBroken(absl::IsAborted(worked) ? worked : absl::InternalError(worked.message()));
    return;
  }
  request.status = worked;
  name->worked = true;
  world_->direct()->PublishDone(name->ticket);
  world_->waiter().Ring();
}

void Engine::FinishInPlace(LocalName* name) {
  Request* request = name->pending;
  const bool sums = request->signature.kind == RequestKind::kAllreduce;
  if (sums && name->staged) CollectOthersSlices(*request);
  world_->direct()->OwnNext(name->ticket, name->word);
  NoteDirect(*request, name->begin_ns);
  Complete({&request, 1}, true);
}

}  // namespace hvd
