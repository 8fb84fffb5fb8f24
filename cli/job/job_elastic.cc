// SPDX-License-Identifier: Apache-2.0
// JobState's part for jobs whose members come and go: what happens is told to the membership, and
// what that wants becomes commands and facts.
#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/printable.h"
#include "base/process_end.h"
#include "cli/job/job_state.h"
#include "cli/membership/link_words.h"
#include "cli/report/verdict_text.h"

namespace hvd {
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

v1::RankExited ExitOf(const v1::MemberDied& died) {
  v1::RankExited exit;
  exit.set_exit_code(died.exit_code());
  exit.set_signal(died.signal());
  exit.set_core_dumped(died.core_dumped());
  exit.set_out_of_memory(died.out_of_memory());
  exit.set_joined(died.epoch() != 0);
  exit.set_left(died.left());
  return exit;
}

Ending EndingOf(MembershipEnd end) {
  switch (end) {
    case MembershipEnd::kStateLost:
      return Ending::kStateLost;
    case MembershipEnd::kTooFew:
      return Ending::kTooFew;
    case MembershipEnd::kResetLimit:
      return Ending::kResetLimit;
    case MembershipEnd::kProgramBug:
      return Ending::kProgramBug;
  }
  return Ending::kTooFew;
}

}  // namespace

void JobState::Discovered(const std::vector<HostSlots>& hosts, double now) {
  if (!changes()) return;
  discovered_ = hosts;
  std::vector<BookHost> book;
  book.reserve(hosts.size());
  for (const HostSlots& host : hosts) book.push_back({host.name, host.slots});
  membership_->Listed(book, now);
  CarryOut(now);
}

void JobState::DiscoveryFailed(const std::string& why, double now) {
  End(Ending::kNoHosts, absl::StrCat("nobody says which hosts there are: ", why), now);
}

// In their order: what an action brings about comes behind those that are known already.
void JobState::CarryOut(double now) {
  if (std::exchange(carries_out_, true)) return;
  for (auto wanted = membership_->TakeActions(); !wanted.empty();
       wanted = membership_->TakeActions()) {
    for (MembershipAction& action : wanted) CarryOut(std::move(action), now);
  }
  carries_out_ = false;
  Settle(now);
}

void JobState::CarryOut(MembershipAction action, double now) {
  if (stopping_.begun) return;
  v1::Command command;
  switch (action.kind) {
    case MembershipAction::kReach:
      return ReachHost(action, now);
    case MembershipAction::kSpawn:
      return SpawnMembers(action);
    case MembershipAction::kPropose:
      return ProposeEpoch(action.propose);
    case MembershipAction::kAnnounce:
      command.mutable_epoch_change()->set_epoch(action.epoch);
      command.mutable_epoch_change()->set_text(action.text);
      return epochs_.SendToEpoch(command);
    case MembershipAction::kAbort:
      command.mutable_epoch_abort()->set_epoch(action.epoch);
      command.mutable_epoch_abort()->set_cause(action.text);
      return epochs_.SendToEpoch(command, action.host);
    case MembershipAction::kRetire:
      return RetireMember(action);
    case MembershipAction::kStopHost:
      return StopHost(action, now);
    case MembershipAction::kEnd:
      return EndByMembership(action, now);
    case MembershipAction::kSay:
      return outbox_.Say(std::move(action.text));
  }
}

void JobState::ReachHost(const MembershipAction& action, double now) {
  const auto found = std::find_if(discovered_.begin(), discovered_.end(),
                                  [&](const auto& host) { return host.name == action.text; });
  if (found == discovered_.end()) return;
  HostFact fact;
  fact.name = found->name;
  fact.ranks = found->slots;
  fact.reached_s = Since(now);
  fact.past = !facts_.epochs.empty();
  facts_.hosts.push_back(std::move(fact));
  launched_all_ = false;
  outbox_.Reach(action.host, *found);
}

// Until an epoch begins every member counts for the job's end, but those that have failed and in
// whose place others come.
void JobState::ForgetReplaced() {
  if (!facts_.epochs.empty()) return;
  for (RankFact& fact : facts_.ranks) {
    const bool well = fact.phase == RankFact::kExited && fact.broke.empty() &&
                      fact.exit.exit_code() == 0 && fact.exit.signal() == 0;
    fact.past |= fact.told_dead && !well;
  }
}

void JobState::SpawnMembers(const MembershipAction& action) {
  ForgetReplaced();
  for (const v1::Seat& seat : action.spawn.seats()) {
    RankFact fact;
    fact.host = action.host;
    fact.slot = static_cast<int>(seat.slot());
    fact.share = static_cast<int>(seat.share());
    fact.past = !facts_.epochs.empty();
    facts_.ranks.push_back(std::move(fact));
    output_.Add();
    ++running_;
  }
  if (action.spawn.shares() > 0) {
    facts_.hosts[action.host].ranks = static_cast<int>(action.spawn.shares());
  }
  v1::Command command;
  *command.mutable_spawn_slots() = action.spawn;
  outbox_.Send(action.host, std::move(command));
}

void JobState::RetireMember(const MembershipAction& action) {
  RankFact& fact = facts_.ranks[IndexOf(action.member)];
  fact.past = true;
  v1::Command command;
  command.mutable_retire_slot()->set_slot(fact.slot);
  command.mutable_retire_slot()->set_cause(action.text);
  command.mutable_retire_slot()->set_removed(action.removed);
  outbox_.Send(action.host, std::move(command));
}

// One that has not spoken yet hears no command.
void JobState::StopHost(const MembershipAction& action, double now) {
  HostFact& fact = facts_.hosts[action.host];
  fact.past = true;
  if (fact.phase == HostFact::kStarting) return LoseHost(action.host, action.text, now);
  v1::Command command;
  command.mutable_stop()->set_cause(action.text);
  outbox_.Send(action.host, std::move(command));
}

void JobState::ProposeEpoch(const v1::EpochPropose& propose) {
  std::vector<HostShape> shapes;
  int rank = 0;
  for (const v1::EpochHost& host : propose.hosts()) {
    shapes.push_back({host.name(), host.members_size()});
    for (const v1::Seat& seat : host.members()) {
      facts_.ranks[IndexOf(seat.member())].rank = rank++;
    }
  }
  facts_.topology = Topology(std::move(shapes));
  epochs_.Adopt(propose);
}

void JobState::EndByMembership(const MembershipAction& action, double now) {
  facts_.ending_rank = IndexOf(action.member);
  End(EndingOf(action.end), action.text, now);
}

// An epoch that is over, or whose job is being stopped, does not begin any more, though its last
// host may say that it is ready.
void JobState::OnReady(int host, uint64_t epoch, double now) {
  if (stopping_.begun || (membership_ && membership_->IsOver(epoch))) return;
  if (membership_) membership_->Ready(host, epoch);
  if (epochs_.Ready(host, epoch)) EpochStarted(epoch, now);
}

// From now on the job's end is that of this epoch's ranks.
void JobState::EpochStarted(uint64_t epoch, double now) {
  if (!membership_) return;
  membership_->Started(epoch, now);
  facts_.cut_links.clear();
  facts_.epochs = membership_->history();
  for (size_t index = 0; index < facts_.ranks.size(); ++index) {
    facts_.ranks[index].past = members().RankOf(index + 1) < 0;
  }
  for (size_t host = 0; host < facts_.hosts.size(); ++host) {
    facts_.hosts[host].past = members().PlaceOf(static_cast<int>(host)) < 0;
  }
  CarryOut(now);
}

// The others go on without it. Its link ends, so that its ranks do.
void JobState::LoseHost(int host, const std::string& cause, double now) {
  outbox_.Drop(host);
  TakeHostOut(host, cause, now);
}

void JobState::TakeHostOut(int host, const std::string& cause, double now) {
  facts_.hosts[host].phase = HostFact::kGone;
  LoseRanks(host);
  membership_->HostGone(host, cause, now);
  CarryOut(now);
}

// The last words of a host's ranks come on another stream than the word that it has stopped.
void JobState::DropDrained(double now) {
  std::erase_if(drained_hosts_, [&](const auto& entry) {
    bool ended = true;
    for (size_t rank = 0; rank < facts_.ranks.size(); ++rank) {
      ended &= facts_.ranks[rank].host != entry.first || output_.Ended(static_cast<int>(rank));
    }
    const bool over = ended || (now >= entry.second && !output_.paused());
    if (over) outbox_.Drop(entry.first);
    if (!over && !output_.paused()) WakeAt(entry.second);
    return over;
  });
}

// A death is told at once, and again with its whole end; the first counts.
void JobState::TellDeath(int index, const v1::MemberDied& died, double now) {
  RankFact& fact = facts_.ranks[index];
  const bool again = std::exchange(fact.told_dead, true);
  MemberEnd end = EndOf(died);
  if (end.epoch == 0) end.epoch = fact.epoch;
  end.own |= fact.cause;  // the abort is its doing, however late it ends itself
  const v1::RankExited exit = fact.phase == RankFact::kExited ? fact.exit : ExitOf(died);
  end.what = end.clean() ? SayExit(index, exit)
                         : absl::StrCat(NameRank(facts_, index), " ", DescribeExit(exit));
  if (EndsBySignal(end, now)) return;
  const bool first = !again && death_.empty() && !changes();
  if (first && !end.clean() && !died.after_abort()) death_ = end.what;
  membership_->Died(died.member(), end, now);
  CarryOut(now);
}

// All ranks have been told, and whoever comes in their place would be: whether a person has pressed
// Ctrl-\ or meant something that the program does not know, nobody is to be replaced.
bool JobState::EndsBySignal(const MemberEnd& end, double now) {
  if (facts_.passed_on.count(end.signal) == 0) return false;
  facts_.ending_signal = end.signal;
  End(Ending::kSignal, absl::StrCat("ended by ", NameSignal(end.signal), ": ", end.what), now);
  return true;
}

// A worker that has died behind its wrapper, or whose process lives on without a link, is no rank
// any more. Its wrapper's end tells nothing, since it is asked for here.
void JobState::ReplaceBroken(int index, const v1::RankBroke& broke, double now) {
  RankFact& fact = facts_.ranks[index];
  if (std::exchange(fact.told_dead, true)) return;
  fact.broke = broke.message();
  fact.broke_s = Since(now);
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
  outbox_.Send(fact.host, std::move(command));
  membership_->Died(broke.member(), end, now);
  CarryOut(now);
}

std::vector<AwaitedRank> JobState::AwaitedRanks(double now) const {
  std::vector<AwaitedRank> ranks;
  if (!changes()) return ranks;
  for (const Membership::Awaited& one : membership_->WhoIsAwaited()) {
    const int rank = members().RankOf(one.member);
    if (rank < 0) continue;
    ranks.push_back({rank, facts_.ranks[IndexOf(one.member)].slot, now - one.since, one.by});
  }
  return ranks;
}

// False: neither a rank that can be replaced nor a link is to blame, so another epoch would be no
// better.
bool JobState::ReplaceStalled(const StallBook::Report& stall, double now) {
  if (!changes() || (stall.held.empty() && stall.cut.empty())) return false;
  const std::string waited = absl::StrFormat("after %.0f s of waiting", stall.waited_s);
  const uint64_t epoch = members().proposed();
  outbox_.Say(stall.text);
  for (const auto& [one, other] : stall.cut) {
    const int host = members().hosts()[one], far = members().hosts()[other];
    membership_->Unreached(host, far, epoch, waited);
    membership_->Broke(-1, epoch, SayLink(HostName(host), HostName(far), waited), now);
  }
  for (const int rank : stall.held) {
    const uint64_t member = members().MemberAt(epoch, rank);
    const int index = IndexOf(member);
    if (index < 0) continue;
    membership_->Stalled(member,
                         absl::StrCat(NameRank(facts_, index),
                                      " is held (SIGSTOP, a debugger?) and is replaced ", waited),
                         now);
  }
  CarryOut(now);
  return true;
}

void JobState::MembersEvent(int host, const v1::Event& event, double now) {
  if (!membership_ || stopping_.begun) return;
  if (event.has_member_stands()) {
    const v1::MemberStands& stands = event.member_stands();
    membership_->Stands(stands.member(), stands.after_epoch(), now);
  } else if (event.has_host_quiet()) {
    const v1::HostQuiet& quiet = event.host_quiet();
    const KeptCommits kept = {quiet.commit(), quiet.before(), quiet.steps(), quiet.place()};
    membership_->Quiet(host, quiet.epoch(), kept, now);
  } else if (event.has_drain_asked()) {
    membership_->DrainAsked(host, Printable(event.drain_asked().cause()), now);
  }
  CarryOut(now);
}

}  // namespace hvd
