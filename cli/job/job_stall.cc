// JobState's part for stalled tensors: a host says that it is time, all are asked, the person is
// told who is missing.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/job/job_state.h"

namespace hvd {
namespace {

constexpr double kAnswerS = 1;

}  // namespace

// Hosts notice a stall one after the other; one question is enough for all that tells of it.
void JobState::OnStallDue(double now) {
  if (stopping_) return;
  stall_due_again_ = stalls_.asking();
  if (stall_due_again_) return;
  stalls_.Begin();
  stall_deadline_ = now + kAnswerS;
  v1::Command command;
  command.mutable_ask_pending();
  Send(kAllHosts, std::move(command));
  Settle(now);
}

void JobState::OnPending(int host, const v1::HostPending& pending, double now) {
  if (!stalls_.asking()) return;
  stalls_.Answered(host, pending);
  std::vector<int> alive;
  for (size_t i = 0; i < facts_.hosts.size(); ++i) {
    if (facts_.hosts[i].phase == HostFact::kLaunched) alive.push_back(static_cast<int>(i));
  }
  if (stalls_.Complete(alive)) TellStall(now);
}

void JobState::TellStall(double now) {
  const bool ends = policy_.stall_abort_s > 0;
  const double least_s =
      ends ? std::min(policy_.stall_warn_s, policy_.stall_abort_s) : policy_.stall_warn_s;
  const StallBook::Report report = stalls_.End(least_s);
  const bool again = std::exchange(stall_due_again_, false);
  if (stopping_) return Settle(now);
  if (report.text.empty()) return again ? OnStallDue(now) : Settle(now);
  if (ends && report.waited_s >= policy_.stall_abort_s) {
    return End(Ending::kStalled, report.text, now);
  }
  if (report.waited_s >= policy_.stall_warn_s) Say(report.text);
  Settle(now);
}

}  // namespace hvd
