// SPDX-License-Identifier: Apache-2.0
// JobState's part for ranks: their starts, their deaths and their ends. When one dies, or leaves,
// while others wait for it, the other hosts are told at once; who is to blame is judged later, from
// the ranks' whole ends (RankExited).
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/printable.h"
#include "cli/job/job_state.h"
#include "cli/membership/link_words.h"
#include "cli/report/verdict_text.h"

namespace hvd {
namespace {

// A rank that leaves by an exception, or cannot go on, still has to unwind, say so and end.
constexpr double kCausePatienceS = 1;
constexpr double kWrapperPatienceS = 0.2;  // for the end of what a dead worker was started by

bool Failed(const v1::MemberDied& died) { return died.signal() != 0 || died.exit_code() != 0; }

// Makes a rank's death from its exit, if nobody has told the death: the rank was never started, or
// its host had no time to tell.
v1::MemberDied DeathOf(const v1::RankExited& exit) {
  v1::MemberDied died;
  died.set_member(exit.member());
  died.set_exit_code(exit.exit_code());
  died.set_signal(exit.signal());
  died.set_out_of_memory(exit.out_of_memory());
  died.set_left(exit.left());
  died.set_after_abort(exit.after_abort());
  return died;
}

// As much of its end as is known before its output has ended.
v1::RankExited EndOf(const v1::MemberDied& died) {
  v1::RankExited end;
  end.set_member(died.member());
  end.set_exit_code(died.exit_code());
  end.set_signal(died.signal());
  end.set_core_dumped(died.core_dumped());
  end.set_out_of_memory(died.out_of_memory());
  end.set_joined(died.epoch() != 0);
  end.set_left(died.left());
  return end;
}

}  // namespace

void JobState::OnStarted(const v1::RankStarted& started) {
  const int rank = IndexOf(started.member());
  if (rank < 0) return;
  RankFact& fact = facts_.ranks[rank];
  if (fact.phase != RankFact::kPlanned) return;
  fact.phase = RankFact::kRunning;
  fact.pid = started.pid();
  output_.Started(rank);
}

// Its own host has aborted its epoch already.
void JobState::OnDied(int host, const v1::MemberDied& died, double now) {
  const int rank = IndexOf(died.member());
  if (rank < 0 || died.spoken_for()) return;
  RankFact& fact = facts_.ranks[rank];
  if (fact.phase == RankFact::kExited || fact.phase == RankFact::kLost) return;
  fact.died_s = Since(now);
  fact.epoch = std::max(fact.epoch, died.epoch());
  if (!died.left()) EndAgreement(died.cause());
  if (stopping_.begun) return;
  if (membership_) return TellDeath(rank, died, now);
  const v1::RankExited end = EndOf(died);
  const std::string cause = Failed(died) ? died.cause() : SayExit(rank, end);
  if (Failed(died) && !died.after_abort() && death_.empty()) {
    death_ = absl::StrCat(NameRank(facts_, rank), " ", DescribeExit(end));
  }
  const std::string& first = died.aborted().empty() ? cause : died.aborted();
  const bool known = died.aborted().empty() && died.after_abort();
  if (end.joined() && !end.left() && !known) epochs_.TellAborted(host, died.epoch(), first);
  epochs_.Gone(rank, Failed(died) ? cause : cause + "; it comes to no other hvd_init");
}

void JobState::OnExited(const v1::RankExited& exit, double now) {
  const int rank = IndexOf(exit.member());
  if (rank < 0) return;
  RankFact& fact = facts_.ranks[rank];
  if (fact.phase == RankFact::kExited || fact.phase == RankFact::kLost) return;
  output_.Started(rank);
  fact.phase = RankFact::kExited;
  fact.exit = exit;
  const std::string& host = HostName(fact.host);
  fact.exit.set_exec_error(std::string(absl::StripPrefix(exit.exec_error(), host + ": ")));
  fact.ended_s = std::max(0.0, Since(now) - static_cast<double>(exit.told_after_us()) * 1e-6);
  if (fact.died_s >= 0) fact.ended_s = std::min(fact.ended_s, fact.died_s);
  fact.during_stop = stopping_.begun;
  if (exit.pid() != 0) fact.pid = exit.pid();
  --running_;
  output_.MayFollow(now);
  if (exit.has_abort_rank()) NoteCause(fact.epoch, exit.abort_rank());
  if (exit.has_unreached()) {
    NoteUnreached(fact.host, fact.epoch, exit.unreached(), Printable(exit.aborted()));
  }
  if (membership_) {
    TellDeath(rank, DeathOf(exit), now);
    membership_->Freed(exit.member(), now);
    CarryOut(now);
    if (changes() || fact.past) return Settle(now);
  }
  if (exit.signal() != 0 || exit.exit_code() != 0) return FailedExit(rank, now);
  if (victim_.until > 0 && !CauseRuns()) return Stop(victim_.cause, false, now);
  if (!exit.left() && !exit.refused() && OthersNeeded(rank)) {
    // The ranks that failed for it may have been told first.
    fact.early = !stopping_.begun || started_ + fact.ended_s <= stopping_.since;
    // Whoever waits for it gets an error that names it; whoever does not goes on undisturbed.
    if (!stopping_.begun) outbox_.Abort(kAllHosts, 0, SayExit(rank, fact.exit));
  }
  if (!stopping_.begun && !membership_) {
    epochs_.Gone(rank, SayExit(rank, fact.exit) + "; it comes to no other hvd_init");
  }
  Settle(now);
}

void JobState::FailedExit(int rank, double now) {
  const RankFact& fact = facts_.ranks[rank];
  // A manager tells each host for itself, and this one's may come last.
  const bool noticed = policy_.end_notice != 0 && fact.exit.signal() == policy_.end_notice;
  if (noticed && !stopping_.begun) return Noticed(now);
  const std::string cause = absl::StrCat(NameRank(facts_, rank), " ", DescribeExit(fact.exit));
  const bool by_another = fact.exit.after_abort() && !fact.cause;
  if (by_another && CauseRuns()) return StopForVictim(cause, kCausePatienceS, now);
  Stop(by_another && !death_.empty() ? death_ : cause, false, now);
}

void JobState::OnBroke(const v1::RankBroke& broke, double now) {
  const int rank = IndexOf(broke.member());
  if (rank < 0) return;
  EndAgreement(Printable(broke.message()));
  if (stopping_.begun) return;
  if (changes()) return ReplaceBroken(rank, broke, now);
  RankFact& fact = facts_.ranks[rank];
  if (fact.past) return;
  fact.broke = broke.message();
  fact.broke_s = Since(now);
  fact.worker = broke.worker();
  broke_host_ = fact.host;
  const std::string cause = Printable(broke.message());
  if (fact.worker.pid() == 0) return Stop(cause, false, now);
  // Its wrapper may be about to end by itself, with a code that says more.
  fact.cause = true;
  outbox_.Abort(kAllHosts, 0, cause);
  StopForVictim(cause, kWrapperPatienceS, now);
}

// It may still say more by how it ends. Ranks of other hosts that wait for it hear of it only here.
void JobState::OnInitFailed(const v1::RankInitFailed& failed, double now) {
  const int rank = IndexOf(failed.member());
  if (rank < 0) return;
  RankFact& fact = facts_.ranks[rank];
  fact.init_failure = Printable(failed.message());
  if (failed.joined() && changes()) {
    membership_->Broke(
        fact.host, membership_->epoch(),
        absl::StrCat("hvd_init of ", NameRank(facts_, rank), " failed: ", fact.init_failure), now);
    return CarryOut(now);
  }
  if (!failed.joined() || fact.past)
    return;  // others are not there yet, or wait until --start-timeout
  fact.cause = true;
  fact.init_failed_s = Since(now);
  if (stopping_.begun) return;  // for another's, of which this one had not heard
  const std::string cause =
      absl::StrCat("hvd_init of ", NameRank(facts_, rank), " failed: ", fact.init_failure);
  outbox_.Abort(kAllHosts, 0, cause);
  StopForVictim(cause, kCausePatienceS, now);
}

void JobState::OnJoined(const v1::RankJoined& joined, double now) {
  const int rank = IndexOf(joined.member());
  if (rank < 0) return;
  RankFact& fact = facts_.ranks[rank];
  fact.cause = false;
  fact.init_failure.clear();  // another try
  fact.epoch = std::max(fact.epoch, joined.epoch());
  if (!stopping_.begun && !membership_) epochs_.Joined(rank, joined.epoch(), now);
  Settle(now);
}

// Ranks abort an epoch themselves when one leaves while others wait for it, or cannot go on. Ranks
// that are inside a collective on other hosts hear of it only here.
void JobState::OnLeft(int host, const v1::RankLeft& left, double now) {
  if (left.has_abort_rank()) NoteCause(left.epoch(), left.abort_rank());
  if (!left.aborted().empty()) EndAgreement(Printable(left.aborted()));
  if (stopping_.begun || left.aborted().empty()) return;
  std::string cause = Printable(left.aborted());
  if (left.has_unreached()) cause = NoteUnreached(host, left.epoch(), left.unreached(), cause);
  if (membership_) {
    membership_->Broke(host, left.epoch(), cause, now);
    return CarryOut(now);
  }
  epochs_.TellAborted(host, left.epoch(), left.aborted());
}

// By a worker's word. Returns the cause with the names of both hosts.
std::string JobState::NoteUnreached(int host, uint64_t epoch, uint32_t rank, std::string cause) {
  const int index = IndexOf(members().MemberAt(epoch, rank));
  const int other = index < 0 ? host : facts_.ranks[index].host;
  if (other == host) return cause;
  if (membership_) membership_->Unreached(host, other, epoch, cause);
  const auto same = [&](const LinkFact& known) {
    return std::minmax(known.host, known.other) == std::minmax(host, other);
  };
  const auto& links = facts_.cut_links;
  if (std::none_of(links.begin(), links.end(), same)) {
    facts_.cut_links.push_back({host, other, epoch, cause});
  }
  return SayLink(HostName(host), HostName(other), cause);
}

// By a worker's word.
void JobState::NoteCause(uint64_t epoch, uint32_t rank) {
  const int index = IndexOf(members().MemberAt(epoch, rank));
  if (index >= 0) facts_.ranks[index].cause = true;
}

bool JobState::CauseRuns() const {
  return std::any_of(facts_.ranks.begin(), facts_.ranks.end(), [](const RankFact& fact) {
    return fact.cause && !fact.past && fact.phase == RankFact::kRunning;
  });
}

// Whether ranks besides `rank`, which has ended, outlived it and might have waited for it.
bool JobState::OthersNeeded(int rank) const {
  const double ended_s = facts_.ranks[rank].ended_s;
  return std::any_of(facts_.ranks.begin(), facts_.ranks.end(), [ended_s](const RankFact& other) {
    return !other.past && (other.phase == RankFact::kPlanned || other.phase == RankFact::kRunning ||
                           (other.phase == RankFact::kExited && other.ended_s > ended_s));
  });
}

// "; hvd_init of rank 1 on host0 failed: …" of those that still run.
std::string JobState::InitFailures() const {
  std::string text;
  for (size_t rank = 0; rank < facts_.ranks.size(); ++rank) {
    const RankFact& fact = facts_.ranks[rank];
    if (fact.init_failure.empty() || fact.phase != RankFact::kRunning) continue;
    absl::StrAppend(&text, "; hvd_init of ", NameRank(facts_, static_cast<int>(rank)),
                    " failed: ", fact.init_failure);
  }
  return text;
}

// "rank 1 on host0 exited (code 0) without hvd's init"
std::string JobState::SayExit(int rank, const v1::RankExited& exit) const {
  absl::string_view when = " without hvd's shutdown";
  if (exit.left()) when = " after hvd's shutdown";
  if (!exit.joined()) when = " without hvd's init";
  return absl::StrCat(NameRank(facts_, rank), " exited (code 0)", when);
}

}  // namespace hvd
