// How a rank joins: at once, whatever of its own is pending. What of that it has marked directly,
// or has not marked because its turn is taken, may still have to go to the board: it owes that
// there, and is ready with neutral values for everything else.
#include "base/printable.h"
#include "runtime/engine/engine.h"

namespace hvd {

// What it has submitted before goes on; nothing more comes until the join has returned.
absl::Status Engine::RefuseJoinedLocked(const Request& request) const {
  if (request.signature.kind == RequestKind::kJoin) {
    return absl::FailedPreconditionError("this rank has joined already; its join has not returned");
  }
  const bool named = !request.name.empty();
  return absl::FailedPreconditionError(
      (named ? ShownName(request.name)
             : "unnamed " + std::string(KindName(request.signature.kind))) +
      ": this rank has joined; it submits again when its join has returned");
}

// What this rank has submitted and may still have to mark on the board, each name as often.
std::vector<std::string_view> Engine::OwedLocked() {
  std::vector<std::string_view> owed;
  for (const LocalName* pending : names_.Pending()) {
    if (pending->direct) owed.push_back(*pending->name);
  }
  for (const Request* request : deferred_) owed.push_back(*request->local->name);
  return owed;
}

absl::Status Engine::JoinLocked(LocalName* name) {
  if (leaving_) return absl::AbortedError(kHasLeft);
  name->direct = false;
  if (world_->direct() != nullptr) world_->direct()->BeginRound(rounds_ + 1, names_.turns());
  const absl::StatusOr<uint32_t> number = world_->board().Join(OwedLocked());
  if (!number.ok()) return number.status();
  // What this rank has marked directly stays marked.
  if (world_->direct() != nullptr) world_->direct()->Leave(rounds_ + 1);
  name->board_number = *number;
  by_number_[*number] = name;
  joining_ = name->pending;
  pairs_.SetAway(PairWord::kJoined);
  return absl::OkStatus();
}

// One of those that were pending when this rank joined or left, or the join itself.
void Engine::CompleteAwayLocked(const Request& request) {
  if (request.local != nullptr && request.local->direct)
    world_->board().GiveUp(*request.local->name);
  if (&request != joining_) return;
  joining_ = nullptr;
  pairs_.SetAway(PairWord::kAsks);
  ++rounds_;
  names_.RestartUnnamed();
}

}  // namespace hvd
