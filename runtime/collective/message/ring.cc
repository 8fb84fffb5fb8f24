#include "runtime/collective/message/ring.h"

#include <algorithm>

namespace hvd {
namespace {

// How far sending may be ahead of receiving. A send is done when the transport has taken it, which
// does not show that the right neighbour waits for it; when it does not, soon nobody receives.
constexpr size_t kWindowsAhead = 2;

}  // namespace

RingRun::RingRun(MessageGroup* group, std::unique_ptr<RingPlan> plan, size_t window)
    : group_(group),
      step_(group->step()),
      plan_(std::move(plan)),
      total_(plan_->transfers()),
      window_(std::min(window, kMaxRingWindow)) {}

absl::Status RingRun::Post() {
  const int right = (group_->rank() + 1) % group_->size();
  const int left = (group_->rank() + group_->size() - 1) % group_->size();
  for (; posted_ < total_ && posted_ < received_ + window_; ++posted_) {
    const RingPlan::Buffer to = plan_->Incoming(posted_);
    absl::Status ok =
        group_->Receive({left, step_}, to.data, to.bytes, &receives_[posted_ % window_]);
    if (!ok.ok()) return ok;
  }
  const size_t ahead = std::min(plan_->segments(), kWindowsAhead * window_);
  for (; started_ < total_ && started_ < sent_ + window_ && started_ < received_ + ahead;
       ++started_) {
    const RingPlan::Buffer from = plan_->Outgoing(started_);
    absl::Status ok =
        group_->Send({right, step_}, from.data, from.bytes, &sends_[started_ % window_]);
    if (!ok.ok()) return ok;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> RingRun::Advance() {
  if (absl::Status posted = Post(); !posted.ok()) return posted;
  bool moved = false;
  if (received_ < posted_) {
    const absl::StatusOr<bool> done = group_->TakeIfDone(&receives_[received_ % window_]);
    if (!done.ok()) return done.status();
    if (*done) plan_->Received(received_++);
    moved |= *done;
  }
  if (sent_ < started_) {
    const absl::StatusOr<bool> done = group_->TakeIfDone(&sends_[sent_ % window_]);
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
