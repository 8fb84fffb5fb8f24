// SPDX-License-Identifier: Apache-2.0
#include "cli/job/job_ranks.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/printable.h"
#include "cli/membership/faults/link_words.h"
#include "cli/report/verdict_text.h"

namespace hvd::cli {
namespace {

// A rank that leaves by an exception, or cannot go on, still has to unwind, say so and end.
constexpr double kCausePatienceS = 1;
constexpr double kWrapperPatienceS = 0.2;  // for the end of what a dead worker was started by

bool HasEnded(const RankFact& fact) {
  return fact.phase == RankFact::kExited || fact.phase == RankFact::kLost;
}

}  // namespace

void JobRanks::Started(const v1::RankStarted& started) {
  const int rank = facts().IndexOf(started.member());
  if (rank >= 0) parts_.roll->Started(rank, started.pid());
}

void JobRanks::Died(const v1::MemberDied& died, double now) {
  const int rank = facts().IndexOf(died.member());
  if (rank < 0 || died.spoken_for() || HasEnded(facts().ranks[rank])) return;
  RankFact& fact = facts().ranks[rank];
  fact.died_s = parts_.book->Since(now);
  fact.epoch = std::max(fact.epoch, died.epoch());
  if (!died.left()) parts_.stop->EndAgreement(died.cause());
  if (!parts_.stop->begun()) parts_.crew->Died(rank, died, now);
}

void JobRanks::Exited(const v1::RankExited& exit, double now) {
  const int rank = facts().IndexOf(exit.member());
  if (rank < 0 || HasEnded(facts().ranks[rank])) return;
  NoteExit(rank, exit, now);
  const RankFact& fact = facts().ranks[rank];
  if (exit.has_abort_rank()) NoteCause(fact.epoch, exit.abort_rank());
  if (exit.has_unreached()) {
    NoteUnreached(fact.host, fact.epoch, exit.unreached(), Printable(exit.aborted()));
  }
  parts_.crew->Exited(rank, exit, now);
  // Others may have come in its place, and their facts behind its own.
  if (!parts_.crew->changes() && !facts().ranks[rank].past) JudgeExit(rank, now);
}

void JobRanks::NoteExit(int rank, const v1::RankExited& exit, double now) {
  parts_.roll->Exited(rank, exit, now);
  RankFact& fact = facts().ranks[rank];
  const std::string prefix = absl::StrCat(parts_.book->HostName(fact.host), ": ");
  fact.exit.set_exec_error(std::string(absl::StripPrefix(exit.exec_error(), prefix)));
  const double told_after_s = static_cast<double>(exit.told_after_us()) * 1e-6;
  fact.ended_s = std::max(0.0, parts_.book->Since(now) - told_after_s);
  if (fact.died_s >= 0) fact.ended_s = std::min(fact.ended_s, fact.died_s);
  fact.during_stop = parts_.stop->begun();
}

// Whether the job ends for it, or others do that wait for it.
void JobRanks::JudgeExit(int rank, double now) {
  RankFact& fact = facts().ranks[rank];
  const JobStop& stop = *parts_.stop;
  if (fact.exit.signal() != 0 || fact.exit.exit_code() != 0) return FailedExit(rank, now);
  if (!CauseRuns() && parts_.stop->CulpritEnded(now)) return;
  if (!fact.exit.left() && !fact.exit.refused() && OthersNeeded(rank)) {
    // The ranks that failed for it may have been told first.
    fact.early = !stop.begun() || parts_.book->started + fact.ended_s <= stop.since();
    // Whoever waits for it gets an error that names it; whoever does not goes on undisturbed.
    if (!stop.begun()) {
      parts_.book->outbox.Abort(kAllHosts, 0, SayCleanExit(facts(), rank, fact.exit));
    }
  }
  if (!stop.begun()) parts_.crew->EndedWell(rank);
}

void JobRanks::FailedExit(int rank, double now) {
  const RankFact& fact = facts().ranks[rank];
  const int notice = parts_.book->policy.end_notice;
  JobStop& stop = *parts_.stop;
  // A manager tells each host for itself, and this one's may come last.
  if (notice != 0 && fact.exit.signal() == notice && !stop.begun()) return stop.Noticed(now);
  const std::string cause = absl::StrCat(NameRank(facts(), rank), " ", DescribeExit(fact.exit));
  const bool by_another = fact.exit.after_abort() && !fact.cause;
  if (by_another && CauseRuns()) return stop.AwaitCulprit(cause, kCausePatienceS, now);
  stop.Stop(by_another && !stop.death().empty() ? stop.death() : cause, now);
}

void JobRanks::Broke(const v1::RankBroke& broke, double now) {
  const int rank = facts().IndexOf(broke.member());
  if (rank < 0) return;
  parts_.stop->EndAgreement(Printable(broke.message()));
  if (parts_.stop->begun()) return;
  if (parts_.crew->changes()) return parts_.crew->ReplaceBroken(rank, broke, now);
  RankFact& fact = facts().ranks[rank];
  if (fact.past) return;
  fact.broke = broke.message();
  fact.broke_s = parts_.book->Since(now);
  fact.worker = broke.worker();
  parts_.stop->NoteBroken(fact.host);
  const std::string cause = Printable(broke.message());
  if (fact.worker.pid() == 0) return parts_.stop->Stop(cause, now);
  // Its wrapper may be about to end by itself, with a code that says more.
  fact.cause = true;
  parts_.book->outbox.Abort(kAllHosts, 0, cause);
  parts_.stop->AwaitCulprit(cause, kWrapperPatienceS, now);
}

// It may still say more by how it ends. Ranks of other hosts that wait for it hear of it only here.
void JobRanks::InitFailed(const v1::RankInitFailed& failed, double now) {
  const int rank = facts().IndexOf(failed.member());
  if (rank < 0) return;
  RankFact& fact = facts().ranks[rank];
  fact.init_failure = Printable(failed.message());
  // Others are not there yet, or wait until --start-timeout.
  if (!failed.joined()) return;
  if (parts_.crew->changes()) return parts_.crew->InitFailed(rank, now);
  if (fact.past) return;
  fact.cause = true;
  fact.init_failed_s = parts_.book->Since(now);
  if (parts_.stop->begun()) return;  // for another's, of which this one had not heard
  const std::string cause =
      absl::StrCat("hvd_init of ", NameRank(facts(), rank), " failed: ", fact.init_failure);
  parts_.book->outbox.Abort(kAllHosts, 0, cause);
  parts_.stop->AwaitCulprit(cause, kCausePatienceS, now);
}

void JobRanks::Joined(const v1::RankJoined& joined, double now) {
  const int rank = facts().IndexOf(joined.member());
  if (rank < 0) return;
  RankFact& fact = facts().ranks[rank];
  fact.cause = false;
  fact.init_failure.clear();  // another try
  fact.epoch = std::max(fact.epoch, joined.epoch());
  if (!parts_.stop->begun()) parts_.crew->Joined(rank, joined.epoch(), now);
}

// Ranks abort an epoch themselves when one leaves while others wait for it, or cannot go on. Ranks
// that are inside a collective on other hosts hear of it only here.
void JobRanks::Left(int host, const v1::RankLeft& left, double now) {
  if (left.has_abort_rank()) NoteCause(left.epoch(), left.abort_rank());
  if (left.aborted().empty()) return;
  parts_.stop->EndAgreement(Printable(left.aborted()));
  if (parts_.stop->begun()) return;
  std::string cause = Printable(left.aborted());
  if (left.has_unreached()) cause = NoteUnreached(host, left.epoch(), left.unreached(), cause);
  parts_.crew->Left(host, left, cause, now);
}

void JobRanks::GraceAsked(const v1::GraceAsked& asked) {
  const int rank = facts().IndexOf(asked.member());
  if (rank >= 0) facts().ranks[rank].grace_s = static_cast<double>(asked.milliseconds()) * 1e-3;
}

// By a worker's word. Returns the cause with the names of both hosts.
std::string JobRanks::NoteUnreached(int host, uint64_t epoch, uint32_t rank, std::string cause) {
  const int index = facts().IndexOf(parts_.members->MemberAt(epoch, rank));
  const int other = index < 0 ? host : facts().ranks[index].host;
  if (other == host) return cause;
  parts_.crew->Unreached(host, other, epoch, cause);
  const auto same = [&](const LinkFact& known) {
    return std::minmax(known.host, known.other) == std::minmax(host, other);
  };
  const auto& links = facts().cut_links;
  if (std::none_of(links.begin(), links.end(), same)) {
    facts().cut_links.push_back({host, other, epoch, cause});
  }
  return SayLink(parts_.book->HostName(host), parts_.book->HostName(other), cause);
}

// By a worker's word.
void JobRanks::NoteCause(uint64_t epoch, uint32_t rank) {
  const int index = facts().IndexOf(parts_.members->MemberAt(epoch, rank));
  if (index >= 0) facts().ranks[index].cause = true;
}

bool JobRanks::CauseRuns() const {
  return std::any_of(facts().ranks.begin(), facts().ranks.end(), [](const RankFact& fact) {
    return fact.cause && !fact.past && fact.phase == RankFact::kRunning;
  });
}

// Whether ranks besides `rank`, which has ended, outlived it and might have waited for it.
bool JobRanks::OthersNeeded(int rank) const {
  const double ended_s = facts().ranks[rank].ended_s;
  return std::any_of(facts().ranks.begin(), facts().ranks.end(), [ended_s](const RankFact& other) {
    return !other.past && (other.phase == RankFact::kPlanned || other.phase == RankFact::kRunning ||
                           (other.phase == RankFact::kExited && other.ended_s > ended_s));
  });
}

std::string JobRanks::InitFailures() const {
  std::string text;
  for (size_t rank = 0; rank < facts().ranks.size(); ++rank) {
    const RankFact& fact = facts().ranks[rank];
    if (fact.init_failure.empty() || fact.phase != RankFact::kRunning) continue;
    absl::StrAppend(&text, "; hvd_init of ", NameRank(facts(), static_cast<int>(rank)),
                    " failed: ", fact.init_failure);
  }
  return text;
}

}  // namespace hvd::cli
