// SPDX-License-Identifier: Apache-2.0
#include "cli/job/changing_crew.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/printable.h"
#include "base/process_end.h"
#include "cli/membership/faults/link_words.h"
#include "cli/report/verdict_text.h"

namespace hvd::cli {
namespace {

MemberEnd EndOf(const v1::MemberDied& died) {
  MemberEnd end;
  end.code = died.exit_code();
  end.signal = died.signal();
  end.out_of_memory = died.out_of_memory();
  end.own = !died.after_abort();
  end.epoch = died.epoch();
  end.left = died.left();
  end.kept = {died.commit(), 0, died.steps(), died.place()};
  return end;
}

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

}  // namespace

ChangingCrew::ChangingCrew(const Parts& parts, const ElasticOptions& options)
    : parts_(parts),
      membership_(parts.book->policy.np, options, parts.book->policy.stdin_rank),
      orders_({parts.book, parts.stop, parts.roll, parts.epochs, &membership_}) {}

void ChangingCrew::Tick(double now) {
  membership_.Tick(now);
  orders_.CarryOut(now);
}

// ---- hosts ----

void ChangingCrew::Listed(const std::vector<HostSlots>& hosts, double now) {
  if (!changes()) return;
  orders_.Listed(hosts);
  std::vector<BookHost> book;
  book.reserve(hosts.size());
  for (const HostSlots& host : hosts) book.push_back({host.name, host.slots});
  membership_.Listed(book, now);
  orders_.CarryOut(now);
}

void ChangingCrew::HostGreeted(int host, double now) {
  if (!changes()) return;
  parts_.roll->LaunchSent();
  parts_.book->outbox.Prepare(host);
  membership_.HostReady(host, now);
  orders_.CarryOut(now);
}

void ChangingCrew::LoseHost(int host, const std::string& cause, double now) {
  orders_.LoseHost(host, cause, now);
}

void ChangingCrew::HostStopped(int host, double now) {
  parts_.roll->Drain(host, now);
  orders_.TakeHostOut(host, "it was stopped", now);
}

void ChangingCrew::DrainAsked(int host, const std::string& cause, double now) {
  if (parts_.stop->begun()) return;
  membership_.DrainAsked(host, cause, now);
  orders_.CarryOut(now);
}

void ChangingCrew::Unreached(int host, int other, uint64_t epoch, const std::string& why) {
  membership_.Unreached(host, other, epoch, why);
}

// ---- ranks ----

void ChangingCrew::Stands(const v1::MemberStands& stands, double now) {
  if (parts_.stop->begun()) return;
  membership_.Stands(stands.member(), stands.after_epoch(), now);
  orders_.CarryOut(now);
}

// A death is told at once, and again with its whole end; the first counts.
void ChangingCrew::Died(int index, const v1::MemberDied& died, double now) {
  RankFact& fact = facts().ranks[index];
  const bool again = std::exchange(fact.told_dead, true);
  MemberEnd end = EndOf(died);
  if (end.epoch == 0) end.epoch = fact.epoch;
  end.own |= fact.cause;  // the abort is its doing, however late it ends itself
  const v1::RankExited exit = fact.phase == RankFact::kExited ? fact.exit : ExitOf(died);
  end.what = end.clean() ? SayCleanExit(facts(), index, exit)
                         : absl::StrCat(NameRank(facts(), index), " ", DescribeExit(exit));
  if (EndsBySignal(end, now)) return;
  const bool first = !again && !changes();
  if (first && !end.clean() && !died.after_abort()) parts_.stop->NoteDeath(end.what);
  membership_.Died(died.member(), end, now);
  orders_.CarryOut(now);
}

void ChangingCrew::Exited(int rank, const v1::RankExited& exit, double now) {
  Died(rank, DeathOf(exit), now);
  membership_.Freed(exit.member(), now);
  orders_.CarryOut(now);
}

// All ranks have been told, and whoever comes in their place would be: whether a person has pressed
// Ctrl-\ or meant something that the program does not know, nobody is to be replaced.
bool ChangingCrew::EndsBySignal(const MemberEnd& end, double now) {
  if (facts().passed_on.count(end.signal) == 0) return false;
  facts().ending_signal = end.signal;
  parts_.stop->End(Ending::kSignal,
                   absl::StrCat("ended by ", NameSignal(end.signal), ": ", end.what), now);
  return true;
}

// A worker that has died behind its wrapper, or whose process lives on without a link, is no rank
// any more. Its wrapper's end tells nothing, since it is asked for here.
void ChangingCrew::ReplaceBroken(int index, const v1::RankBroke& broke, double now) {
  RankFact& fact = facts().ranks[index];
  if (std::exchange(fact.told_dead, true)) return;
  fact.broke = broke.message();
  fact.broke_s = parts_.book->Since(now);
  fact.worker = broke.worker();
  MemberEnd end;
  end.known = !broke.has_worker() || broke.worker().known();
  end.code = std::max(broke.worker().exit_code(), broke.worker().signal() == 0 ? 1 : 0);
  end.signal = broke.worker().signal();
  end.epoch = fact.epoch;
  end.lives = broke.worker().pid() == 0;
  end.kept = {broke.commit(), 0, broke.steps(), broke.place()};
  end.what = Printable(broke.message());
  if (EndsBySignal(end, now)) return;
  v1::Command command;
  command.mutable_retire_slot()->set_slot(fact.slot);
  command.mutable_retire_slot()->set_cause(broke.message());
  parts_.book->outbox.Send(fact.host, std::move(command));
  membership_.Died(broke.member(), end, now);
  orders_.CarryOut(now);
}

void ChangingCrew::InitFailed(int rank, double now) {
  const RankFact& fact = facts().ranks[rank];
  membership_.Broke(
      fact.host, membership_.epoch(),
      absl::StrCat("hvd_init of ", NameRank(facts(), rank), " failed: ", fact.init_failure), now);
  orders_.CarryOut(now);
}

void ChangingCrew::Left(int host, const v1::RankLeft& left, const std::string& cause, double now) {
  membership_.Broke(host, left.epoch(), cause, now);
  orders_.CarryOut(now);
}

// ---- epochs ----

// Only the newest epoch can start.
void ChangingCrew::Addresses(int host, const v1::HostAddresses& addresses) {
  const bool newest = addresses.epoch() == members().proposed() && members().PlaceOf(host) >= 0;
  if (newest) parts_.epochs->Collect(host, addresses);
}

// An epoch that is over does not begin any more, though its last host may say that it is ready.
void ChangingCrew::Ready(int host, uint64_t epoch, double now) {
  if (membership_.IsOver(epoch)) return;
  membership_.Ready(host, epoch);
  if (members().PlaceOf(host) >= 0 && parts_.epochs->Ready(host, epoch)) EpochStarted(epoch, now);
}

// From now on the job's end is that of this epoch's ranks.
void ChangingCrew::EpochStarted(uint64_t epoch, double now) {
  membership_.Started(epoch, now);
  facts().cut_links.clear();
  facts().epochs = membership_.history();
  for (size_t index = 0; index < facts().ranks.size(); ++index) {
    facts().ranks[index].past = members().RankOf(index + 1) < 0;
  }
  for (size_t host = 0; host < facts().hosts.size(); ++host) {
    facts().hosts[host].past = members().PlaceOf(static_cast<int>(host)) < 0;
  }
  orders_.CarryOut(now);
}

void ChangingCrew::Quiet(int host, const v1::HostQuiet& quiet, double now) {
  if (parts_.stop->begun()) return;
  const KeptCommits kept = {quiet.commit(), quiet.before(), quiet.steps(), quiet.place()};
  membership_.Quiet(host, quiet.epoch(), kept, now);
  orders_.CarryOut(now);
}

// ---- stalls ----

std::vector<AwaitedRank> ChangingCrew::Awaited(double now) const {
  std::vector<AwaitedRank> ranks;
  if (!changes()) return ranks;
  for (const AwaitedMember& one : membership_.WhoIsAwaited()) {
    const int rank = members().RankOf(one.member);
    if (rank < 0) continue;
    ranks.push_back(
        {rank, facts().ranks[facts().IndexOf(one.member)].slot, now - one.since, one.by});
  }
  return ranks;
}

bool ChangingCrew::ReplaceStalled(const StallBook::Report& stall, double now) {
  if (!changes() || (stall.held.empty() && stall.cut.empty())) return false;
  const std::string waited = absl::StrFormat("after %.0f s of waiting", stall.waited_s);
  const uint64_t epoch = members().proposed();
  parts_.book->outbox.Say(stall.text);
  for (const auto& [one, other] : stall.cut) {
    const int host = members().hosts()[one], far = members().hosts()[other];
    membership_.Unreached(host, far, epoch, waited);
    membership_.Broke(
        -1, epoch, SayLink(parts_.book->HostName(host), parts_.book->HostName(far), waited), now);
  }
  for (const int rank : stall.held) {
    const uint64_t member = members().MemberAt(epoch, rank);
    const int index = facts().IndexOf(member);
    if (index < 0) continue;
    membership_.Stalled(member,
                        absl::StrCat(NameRank(facts(), index),
                                     " is held (SIGSTOP, a debugger?) and is replaced ", waited),
                        now);
  }
  orders_.CarryOut(now);
  return true;
}

}  // namespace hvd::cli
