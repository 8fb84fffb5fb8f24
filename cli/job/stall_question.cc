// SPDX-License-Identifier: Apache-2.0
#include "cli/job/stall_question.h"

#include <algorithm>
#include <utility>

namespace hvd::cli {
namespace {

constexpr double kAnswerS = 1;

}  // namespace

void StallQuestion::Due(double now) {
  again_ = book_.asking();
  if (again_) return;
  book_.Begin();
  deadline_ = now + kAnswerS;
  v1::Command command;
  command.mutable_ask_pending();
  outbox_->Send(kAllHosts, std::move(command));
}

bool StallQuestion::Answered(int host, const v1::HostPending& pending,
                             const std::vector<int>& alive) {
  if (!book_.asking()) return false;
  book_.Answered(host, pending);
  return book_.Complete(alive);
}

std::optional<StallBook::Report> StallQuestion::Tell(double now,
                                                     const std::vector<AwaitedRank>& awaited) {
  const bool ends = limits_.abort_s > 0;
  const double least_s = ends ? std::min(limits_.warn_s, limits_.abort_s) : limits_.warn_s;
  StallBook::Report report = book_.End(least_s, awaited);
  const bool again = std::exchange(again_, false);
  if (report.text.empty()) {
    if (again) Due(now);
    return std::nullopt;
  }
  if (ends && report.waited_s >= limits_.abort_s) return report;
  if (report.waited_s >= limits_.warn_s) outbox_->Say(std::move(report.text));
  return std::nullopt;
}

}  // namespace hvd::cli
