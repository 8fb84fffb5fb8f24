// SPDX-License-Identifier: Apache-2.0
#include "daemon/link_b/member_ends.h"

#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/process_end.h"
#include "daemon/processes/process_state.h"

namespace hvd::daemon {
namespace {

// A dying process closes its sockets before its pidfd speaks; its parent's word on how it ended
// comes right after.
constexpr auto kWordOfShim = std::chrono::milliseconds(200);

absl::string_view When(const LinkFacts& facts) {
  if (!facts.joined) return " before hvd's init";
  return facts.left ? "" : " without hvd's shutdown";
}

v1::WorkerEnd EndOf(int pid, std::optional<int> status) {
  v1::WorkerEnd worker;
  worker.set_pid(pid);
  worker.set_known(status.has_value());
  if (!status.has_value()) return worker;
  if (WIFSIGNALED(*status)) worker.set_signal(WTERMSIG(*status));
  if (WIFSIGNALED(*status)) worker.set_core_dumped(WCOREDUMP(*status));
  if (WIFEXITED(*status)) worker.set_exit_code(WEXITSTATUS(*status));
  return worker;
}

}  // namespace

// ---- the end of a process ----

LinkFacts MemberEnds::ProcessEnded(const RankDeath& death) {
  const int slot = death.slot;
  parts_.connections->HearOut(slot);
  LinkFacts facts = FactsOf(slot);
  worker(slot).pid = -1;
  facts.cause = absl::StrCat(Name(slot), " ", death.how(), When(facts));
  if (!facts.spoken_for) parts_.epochs->Gone(slot, facts.cause);
  worker(slot).ended = true;
  if (death.well() && !book().removed(slot)) closing_ = true;
  if (closing_ || !parts_.elastic) LookForLast();
  return facts;
}

LinkFacts MemberEnds::FactsOf(int slot) {
  LinkFacts facts = parts_.epochs->members().FactsOf(slot);
  if (parts_.elastic) facts.kept = parts_.epochs->Kept();
  // A wrapper may end before the process that speaks for its rank.
  const LinkPeer* speaker = parts_.connections->SpeakerOf(slot);
  facts.spoken_for = speaker != nullptr && speaker->pid() != worker(slot).pid && !speaker->Ended(0);
  return facts;
}

void MemberEnds::Close() {
  closing_ = true;
  if (parts_.elastic) LookForLast();
}

// In an elastic job others may come after the last one, until it closes.
void MemberEnds::LookForLast() {
  const WorkerSlots& workers = *parts_.workers;
  const bool all = std::all_of(workers.begin(), workers.end(), [](const WorkerSlot& each) {
    return each.ended || each.member == 0;
  });
  if (all && !std::exchange(last_told_, true)) on_last_();
}

// ---- the end of a link ----

void MemberEnds::LinkEnded(const LinkPeer& peer, const char* how) {
  if (!book().in_epoch(peer.slot)) return LostOutside(peer.slot);
  if (book().in_live_epoch(peer.slot)) return Lost(peer, how);
  // An aborted epoch may be left without a word: by a process that will try again, or by its end.
  if (parts_.elastic) return LostAfterAbort(peer, how);
  if (!peer.Ended(0)) return parts_.epochs->Abandon(peer.slot);
  parts_.epochs->Gone(peer.slot, absl::StrCat(Name(peer.slot), " has left the job"));
}

// Elastic: nobody hears of a proposal there. If the member's own process, a wrapper, has ended
// before, this one was its last.
void MemberEnds::LostOutside(int slot) {
  if (!parts_.elastic) return;
  parts_.epochs->StandsNoMore(slot);
  if (worker(slot).ended) parts_.epochs->Gone(slot, absl::StrCat(Name(slot), " has ended"));
}

// Elastic: the others' next epoch waits for it, as it may write into what it has mapped. A process
// that is on its way out closes its link first; its end is told by the shim.
void MemberEnds::LostAfterAbort(const LinkPeer& peer, const char* how) {
  std::optional<int> status = peer.end_status();
  if (!StateOf(peer.pid()).exiting && !peer.Ended(0)) return Broke(peer.slot, how);
  if (peer.pid() == worker(peer.slot).pid) return;
  if (!status.has_value()) status = peer.end_status();
  LostWorker(peer, status);
}

void MemberEnds::Lost(const LinkPeer& peer, const char* how) {
  // While it is on its way out, the kernel tells anybody how; its parent may take that away.
  std::optional<int> status = peer.end_status();
  // In this order: of one that is reaped in between nothing is left but its end.
  if (!StateOf(peer.pid()).exiting && !peer.Ended(0)) return GaveUp(peer.slot, how);
  if (peer.pid() != worker(peer.slot).pid) {
    if (!status.has_value()) status = peer.end_status();
    return LostWorker(peer, status);
  }
  // How it ended comes from the shim at once; without that word this is all there is to say.
  parts_.loop->At(Clock::now() + kWordOfShim, [this, slot = peer.slot] {
    if (book().in_live_epoch(slot)) DiedSomehow(slot);
  });
}

// A process that lives has closed its link. One that has ended the epoch by itself may do so before
// this process has heard of that.
void MemberEnds::GaveUp(int slot, const char* how) {
  const AbortWord heard = parts_.epochs->members().AbortHeardBy(slot);
  if (parts_.elastic || heard.cause.empty()) return Broke(slot, how);
  parts_.epochs->Abort(book().last_epoch(slot), heard.cause);
  parts_.epochs->Abandon(slot);
}

// ---- what is told ----

void MemberEnds::Broke(int slot, const std::string& how) {
  v1::RankBroke broke;
  broke.set_message(absl::StrCat(Name(slot), " ", how));
  TellBroke(slot, std::move(broke));
}

void MemberEnds::DiedSomehow(int slot) {
  v1::RankBroke broke;
  broke.mutable_worker();
  broke.set_message(absl::StrCat(Name(slot), " died"));
  TellBroke(slot, std::move(broke));
}

// The process that spoke for the rank is none that the shim started: nobody else says how it ended.
void MemberEnds::LostWorker(const LinkPeer& peer, std::optional<int> status) {
  v1::RankBroke broke;
  *broke.mutable_worker() = EndOf(peer.pid(), status);
  broke.mutable_worker()->set_wrapper(ProcessName(worker(peer.slot).pid));
  broke.set_message(absl::StrCat(Name(peer.slot), ": its worker (pid ", peer.pid(), ") ",
                                 status.has_value() ? DescribeEnd(*status) : "died"));
  TellBroke(peer.slot, std::move(broke));
}

void MemberEnds::TellBroke(int slot, v1::RankBroke broke) {
  parts_.epochs->Broke(slot, broke.message(), broke.worker().pid() == 0);
  broke.set_member(worker(slot).member);
  if (parts_.elastic) {
    const KeptCommits kept = parts_.epochs->Kept();
    broke.set_commit(kept.newest);
    broke.set_steps(kept.steps);
    broke.set_place(kept.place);
  }
  v1::Event event;
  *event.mutable_rank_broke() = std::move(broke);
  parts_.on_event(std::move(event));
}

void MemberEnds::InitFailed(int slot, const std::string& why) {
  const bool others = !parts_.epochs->members().AbortHeardBy(slot).cause.empty();
  if (book().after_abort(slot) || others) return;
  v1::Event event;
  v1::RankInitFailed& failed = *event.mutable_rank_init_failed();
  failed.set_member(worker(slot).member);
  failed.set_message(why);
  failed.set_joined(book().in_live_epoch(slot));
  if (failed.joined()) {
    parts_.epochs->Broke(slot, absl::StrCat("hvd_init of ", Name(slot), " failed: ", why), false);
  }
  parts_.on_event(std::move(event));
}

}  // namespace hvd::daemon
