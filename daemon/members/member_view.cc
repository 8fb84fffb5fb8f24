// SPDX-License-Identifier: Apache-2.0
#include "daemon/members/member_view.h"

#include <memory>

#include "absl/strings/str_cat.h"

namespace hvd::daemon {

int MemberView::RankOf(int slot) const {
  const Attendance& book = *sources_.attendance;
  const EpochPlan* plan = book.plan(book.last_epoch(slot));
  if (plan == nullptr) plan = book.newest_plan(slot);
  return plan == nullptr ? slot : plan->RankIn(slot);
}

std::string MemberView::Name(int slot) const {
  if (sources_.elastic && sources_.attendance->newest_plan(slot) == nullptr) {
    return absl::StrCat("a new member on ", sources_.host_name);
  }
  return absl::StrCat("rank ", RankOf(slot), " on ", sources_.host_name);
}

std::string MemberView::ActivityOf(int slot) const {
  const std::shared_ptr<EpochMemory> memory =
      sources_.memories->Find(sources_.attendance->last_epoch(slot));
  if (memory == nullptr) return worker(slot).activity;
  return memory->Activity(memory->LocalRankOf(slot));
}

RankTotals MemberView::CountsOf(int slot) const {
  RankTotals totals = worker(slot).counts;
  for (const auto& [epoch, memory] : sources_.memories->by_epoch()) {
    const int local_rank = memory->LocalRankOf(slot);
    const bool its = local_rank >= 0 && memory->IsOf(worker(slot).member, local_rank);
    if (its) totals.Add(memory->Counts(local_rank));
  }
  return totals;
}

AbortWord MemberView::AbortHeardBy(int slot) const {
  if (sources_.attendance->left(slot)) return worker(slot).aborted;
  return sources_.memories->AbortOf(sources_.attendance->last_epoch(slot));
}

bool MemberView::AfterAbort(int slot) const {
  const AbortWord heard = AbortHeardBy(slot);
  const bool by_another = !heard.cause.empty() && heard.rank != RankOf(slot);
  return (sources_.attendance->after_abort(slot) || by_another) && !worker(slot).broke;
}

LinkFacts MemberView::FactsOf(int slot) const {
  const Attendance& book = *sources_.attendance;
  LinkFacts facts;
  facts.aborted = AbortHeardBy(slot);
  facts.after_abort = AfterAbort(slot);
  facts.epoch = book.last_epoch(slot);
  facts.joined = book.joined_ever(slot);
  facts.left = book.left(slot);
  facts.refused = book.refused(slot);
  facts.activity = ActivityOf(slot);
  facts.counts = CountsOf(slot);
  return facts;
}

}  // namespace hvd::daemon
