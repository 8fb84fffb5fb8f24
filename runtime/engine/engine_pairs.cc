// Sends and receives among the executor's work (pairs.h). They take part in no agreement.
#include <chrono>
#include <cstdio>

#include "runtime/engine/engine.h"

namespace hvd {
namespace {

// How long a rank that leaves lets tensors arrive that are on their way already.
constexpr auto kParcelTime = std::chrono::seconds(2);

}  // namespace

absl::Status Engine::EnterPairLocked(Request* request) {
  request->sequence = submissions_ + 1;
  pairs_.Submit(request);
  ++submissions_;
  RankActivity& activity = world_->activity();
  snprintf(activity.last, sizeof(activity.last), "%s %s rank %d (tag %lld)",
           KindName(request->signature.kind),
           request->signature.kind == RequestKind::kSend ? "to" : "from",
           world_->GlobalRank(request->peer), static_cast<long long>(request->tag));
  last_noted_ = nullptr;
  AddPending(1);
  activity.pending.store(static_cast<uint64_t>(pending_.load(std::memory_order_relaxed)),
                         std::memory_order_relaxed);
  return absl::OkStatus();
}

// From inside a wait: what has ended is left for StepPairs.
bool Engine::MovePairs() {
  const absl::StatusOr<bool> moved = pairs_.Step();
  if (moved.ok()) return *moved || pairs_.has_ended();
  (void)world_->waiter()
      .EndEpoch(std::string(moved.status().message()))
      .ok();  // the epoch is aborted now: the caller's wait says so
  return false;
}

bool Engine::StepPairs() {
  if (!pairs_.active()) return false;
  const bool moved = MovePairs();
  const std::vector<Request*> ended = pairs_.TakeEnded();
  for (const Request* request : ended) {
    metrics_.Done(request->signature.kind, InputBytes(*request));
    if (!request->status.ok()) metrics_.Failed();
  }
  if (!ended.empty()) Complete(ended);
  return moved;
}

// What both sides have begun comes to its end by itself: then nothing writes to users' memory any
// more.
void Engine::FinishParcels() {
  const auto end = std::chrono::steady_clock::now() + kParcelTime;
  while (pairs_.HasParcels() && std::chrono::steady_clock::now() < end &&
         world_->waiter().Check().ok()) {
    if (world_->transport() != nullptr) world_->transport()->Progress();
    StepPairs();
  }
}

}  // namespace hvd
