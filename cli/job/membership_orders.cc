// SPDX-License-Identifier: Apache-2.0
#include "cli/job/membership_orders.h"

#include <algorithm>
#include <utility>

namespace hvd::cli {
namespace {

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

void MembershipOrders::CarryOut(double now) {
  if (std::exchange(carries_out_, true)) return;
  for (auto wanted = parts_.membership->TakeActions(); !wanted.empty();
       wanted = parts_.membership->TakeActions()) {
    for (MembershipAction& action : wanted) CarryOut(std::move(action), now);
  }
  carries_out_ = false;
}

void MembershipOrders::CarryOut(MembershipAction action, double now) {
  if (parts_.stop->begun()) return;
  v1::Command command;
  switch (action.kind) {
    case MembershipAction::kReach:
      return Reach(action, now);
    case MembershipAction::kSpawn:
      return Spawn(action);
    case MembershipAction::kPropose:
      return Propose(action.propose);
    case MembershipAction::kAnnounce:
      command.mutable_epoch_change()->set_epoch(action.epoch);
      command.mutable_epoch_change()->set_text(action.text);
      return parts_.epochs->SendToEpoch(command);
    case MembershipAction::kAbort:
      command.mutable_epoch_abort()->set_epoch(action.epoch);
      command.mutable_epoch_abort()->set_cause(action.text);
      return parts_.epochs->SendToEpoch(command, action.host);
    case MembershipAction::kRetire:
      return Retire(action);
    case MembershipAction::kStopHost:
      return StopHost(action, now);
    case MembershipAction::kEnd:
      return End(action, now);
    case MembershipAction::kSay:
      return parts_.book->outbox.Say(std::move(action.text));
  }
}

void MembershipOrders::Reach(const MembershipAction& action, double now) {
  const auto found = std::find_if(discovered_.begin(), discovered_.end(),
                                  [&](const auto& host) { return host.name == action.text; });
  if (found == discovered_.end()) return;
  HostFact fact;
  fact.name = found->name;
  fact.ranks = found->slots;
  fact.reached_s = parts_.book->Since(now);
  fact.past = !parts_.book->facts.epochs.empty();
  parts_.roll->AddHost(std::move(fact));
  parts_.book->outbox.Reach(action.host, *found);
}

// Until an epoch begins every member counts for the job's end, but those that have failed and in
// whose place others come.
void MembershipOrders::ForgetReplaced() {
  JobFacts& facts = parts_.book->facts;
  if (!facts.epochs.empty()) return;
  for (RankFact& fact : facts.ranks) {
    const bool well = fact.phase == RankFact::kExited && fact.broke.empty() &&
                      fact.exit.exit_code() == 0 && fact.exit.signal() == 0;
    fact.past |= fact.told_dead && !well;
  }
}

void MembershipOrders::Spawn(const MembershipAction& action) {
  ForgetReplaced();
  JobFacts& facts = parts_.book->facts;
  for (const v1::Seat& seat : action.spawn.seats()) {
    RankFact fact;
    fact.host = action.host;
    fact.slot = static_cast<int>(seat.slot());
    fact.share = static_cast<int>(seat.share());
    fact.past = !facts.epochs.empty();
    parts_.roll->AddRank(std::move(fact));
  }
  if (action.spawn.shares() > 0) {
    facts.hosts[action.host].ranks = static_cast<int>(action.spawn.shares());
  }
  v1::Command command;
  *command.mutable_spawn_slots() = action.spawn;
  parts_.book->outbox.Send(action.host, std::move(command));
}

void MembershipOrders::Retire(const MembershipAction& action) {
  JobFacts& facts = parts_.book->facts;
  RankFact& fact = facts.ranks[facts.IndexOf(action.member)];
  fact.past = true;
  v1::Command command;
  command.mutable_retire_slot()->set_slot(fact.slot);
  command.mutable_retire_slot()->set_cause(action.text);
  command.mutable_retire_slot()->set_removed(action.removed);
  parts_.book->outbox.Send(action.host, std::move(command));
}

// One that has not spoken yet hears no command.
void MembershipOrders::StopHost(const MembershipAction& action, double now) {
  HostFact& fact = parts_.book->facts.hosts[action.host];
  fact.past = true;
  if (fact.phase == HostFact::kStarting) return LoseHost(action.host, action.text, now);
  v1::Command command;
  command.mutable_stop()->set_cause(action.text);
  parts_.book->outbox.Send(action.host, std::move(command));
}

void MembershipOrders::Propose(const v1::EpochPropose& propose) {
  JobFacts& facts = parts_.book->facts;
  std::vector<HostShape> shapes;
  int rank = 0;
  for (const v1::EpochHost& host : propose.hosts()) {
    shapes.push_back({host.name(), host.members_size()});
    for (const v1::Seat& seat : host.members()) {
      facts.ranks[facts.IndexOf(seat.member())].rank = rank++;
    }
  }
  facts.topology = Topology(std::move(shapes));
  parts_.epochs->Adopt(propose);
}

void MembershipOrders::End(const MembershipAction& action, double now) {
  parts_.book->facts.ending_rank = parts_.book->facts.IndexOf(action.member);
  parts_.stop->End(EndingOf(action.end), action.text, now);
}

void MembershipOrders::LoseHost(int host, const std::string& cause, double now) {
  parts_.book->outbox.Drop(host);
  TakeHostOut(host, cause, now);
}

void MembershipOrders::TakeHostOut(int host, const std::string& cause, double now) {
  parts_.book->facts.hosts[host].phase = HostFact::kGone;
  parts_.roll->LoseRanks(host);
  parts_.membership->HostGone(host, cause, now);
  CarryOut(now);
}

}  // namespace hvd::cli
