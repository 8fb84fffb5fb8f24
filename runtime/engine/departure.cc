// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/departure.h"

#include <new>
#include <string>
#include <utility>

#include "base/printable.h"

namespace hvd::rt {
namespace {

constexpr char kLeaveName[] = "\x01shutdown";  // as kOwnName

}  // namespace

// Requests that the rank has submitted before go on; nothing more comes until the join has
// returned.
absl::Status Departure::Refuse(const Request& request) const {
  // The others know already that nothing more comes.
  if (joining_ == nullptr) return absl::AbortedError(kHasLeft);
  if (request.signature.kind == RequestKind::kJoin) {
    return absl::FailedPreconditionError("this rank has joined already; its join has not returned");
  }
  const bool named = !request.name.empty();
  return absl::FailedPreconditionError(
      (named ? ShownName(request.name)
             : "unnamed " + std::string(KindName(request.signature.kind))) +
      ": this rank has joined; it submits again when its join has returned");
}

absl::Status Departure::Join(LocalName* name) {
  if (leaving_) return absl::AbortedError(kHasLeft);
  name->direct.marked = false;
  ways_.direct().BeginJoin(pending_.names().turns());
  absl::Status marked = ways_.board().Join(name, pending_.Owed());
  if (!marked.ok()) return marked;
  ways_.direct().Leave();  // what this rank has marked directly stays marked
  joining_ = name->pending;
  ways_.pairs().SetAway(PairWord::kJoined);
  return absl::OkStatus();
}

void Departure::EndedAway(const Request& request) {
  const LocalName* name = request.course.is_other ? nullptr : request.course.local;
  if (name != nullptr && name->direct.marked) world_.board().GiveUp(*name->name);
  if (&request != joining_) return;
  joining_ = nullptr;
  ways_.pairs().SetAway(PairWord::kAsks);
  ways_.direct().NextRound();
  pending_.names().RestartUnnamed();
}

Request* Departure::BeginLeave() {
  if (std::exchange(leave_begun_, true)) return nullptr;
  leave_.name = kLeaveName;
  leave_.signature.kind = RequestKind::kLeave;
  return &leave_;
}

absl::Status Departure::LeaveSubmitted(absl::Status status) {
  leave_submitted_ = std::move(status);
  leaving_ = leave_submitted_.ok();
  ways_.direct().Leave();  // what this rank has marked directly stays marked
  if (leaving_) ways_.pairs().SetAway(PairWord::kLeft);
  if (leaving_) NoteLeft();
  return leave_submitted_;
}

// An error ends the epoch: the wait says so.
void Departure::NoteLeft() {
  try {
    (void)world_.board().NoteLeft(pending_.Owed()).ok();
  } catch (const std::bad_alloc& error) {
    world_.board().AbortThrown(error, {});
  }
}

void Departure::EndUnleft(const absl::Status& why) const {
  const std::string reason = absl::IsFailedPrecondition(why)
                                 ? "before its join has returned"
                                 : "and cannot leave in order: " + std::string(why.message());
  const int rank = world_.GlobalRank(world_.rank());
  const std::string text = "rank " + std::to_string(rank) + " has called shutdown " + reason;
  (void)world_.board().Abort({text.c_str(), rank}).ok();  // every wait says it
}

}  // namespace hvd::rt
