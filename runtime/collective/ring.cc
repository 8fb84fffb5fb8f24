#include "runtime/collective/ring.h"

namespace hvd {

RingRun::RingRun(MessageGroup* group, std::unique_ptr<RingPlan> plan)
    : group_(group), step_(group->step()), plan_(std::move(plan)), total_(plan_->transfers()) {}

absl::Status RingRun::Post() {
  const int right = (group_->rank() + 1) % group_->size();
  const int left = (group_->rank() + group_->size() - 1) % group_->size();
  for (; posted_ < total_ && posted_ < received_ + kRingWindow; ++posted_) {
    const RingPlan::Buffer to = plan_->Incoming(posted_);
    absl::Status ok =
        group_->Receive({left, step_}, to.data, to.bytes, &receives_[posted_ % kRingWindow]);
    if (!ok.ok()) return ok;
  }
  for (; started_ < total_ && started_ < sent_ + kRingWindow &&
         started_ < received_ + plan_->segments();
       ++started_) {
    const RingPlan::Buffer from = plan_->Outgoing(started_);
    absl::Status ok =
        group_->Send({right, step_}, from.data, from.bytes, &sends_[started_ % kRingWindow]);
    if (!ok.ok()) return ok;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> RingRun::Advance() {
  if (absl::Status posted = Post(); !posted.ok()) return posted;
  bool moved = false;
  if (received_ < posted_) {
    const absl::StatusOr<bool> done = group_->TakeIfDone(&receives_[received_ % kRingWindow]);
    if (!done.ok()) return done.status();
    if (*done) plan_->Received(received_++);
    moved |= *done;
  }
  if (sent_ < started_) {
    const absl::StatusOr<bool> done = group_->TakeIfDone(&sends_[sent_ % kRingWindow]);
    if (!done.ok()) return done.status();
    if (*done) ++sent_;
    moved |= *done;
  }
  if (moved) {  // what that made possible goes on the wire at once
    if (absl::Status posted = Post(); !posted.ok()) return posted;
  }
  return moved;
}

}  // namespace hvd
