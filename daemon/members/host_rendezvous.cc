// SPDX-License-Identifier: Apache-2.0
#include "daemon/members/host_rendezvous.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace hvd::daemon {

using Kind = EpochAction::Kind;
using Stage = LocalEpoch::Stage;

namespace {

std::string InWords(const std::string& cause) {
  return cause.empty() ? "the job was stopped" : cause;
}

EpochActions OutOfTurn(int slot, uint64_t number) {
  return {{Kind::kRefuse, number, slot, 0, absl::StrCat("out of turn in epoch ", number)}};
}

void Append(const EpochActions& more, EpochActions* actions) {
  actions->insert(actions->end(), more.begin(), more.end());
}

}  // namespace

HostRendezvous::HostRendezvous(int slots, bool elastic)
    : elastic_(elastic), attendance_(slots, elastic) {}

LocalEpoch* HostRendezvous::Live(uint64_t number) {
  LocalEpoch* epoch = attendance_.Find(number);
  return epoch == nullptr || epoch->aborted() ? nullptr : epoch;
}

bool HostRendezvous::IsAborted(uint64_t number) const {
  const LocalEpoch* epoch = attendance_.Find(number);
  return epoch != nullptr && epoch->aborted();
}

// ---- who comes ----

EpochActions HostRendezvous::Propose(EpochPlan plan) {
  const uint64_t number = plan.epoch;
  const auto proposed = std::make_shared<const EpochPlan>(std::move(plan));
  attendance_.At(number).Propose(proposed);
  for (const int slot : proposed->slots) attendance_.member(slot).newest_plan = proposed;
  EpochActions actions;
  if (elastic_) AbortIfLacking(number, &actions);
  for (const int slot : proposed->slots) {
    const bool next = attendance_.member(slot).standing && attendance_.NextFor(slot) == number;
    if (next) Append(Enter(slot, number), &actions);
  }
  return actions;
}

// Elastic: the death of a member that stood may have crossed the proposal that lists it. It never
// comes, so nobody is to enter.
void HostRendezvous::AbortIfLacking(uint64_t number, EpochActions* actions, int but) {
  for (const int slot : attendance_.plan(number)->slots) {
    const std::string& gone = attendance_.member(slot).gone;
    if (!gone.empty() && slot != but) return AbortOne(number, gone, actions);
  }
}

EpochActions HostRendezvous::Join(int slot) {
  EpochActions actions = Abandon(slot);
  Attendant& member = attendance_.member(slot);
  if (attendance_.in_epoch(slot)) {
    return {
        {Kind::kRefuse, 0, slot, 0, "this rank is in an epoch already; it must leave it first"}};
  }
  if (!attendance_.closed().empty()) {
    actions.push_back({Kind::kRefuse, 0, slot, 0, attendance_.closed()});
    return actions;
  }
  if (!member.removed.empty()) {
    actions.push_back({Kind::kRemove, 0, slot, 0, member.removed});
    return actions;
  }
  if (elastic_) member.gone.clear();  // it is there, whatever it failed at before
  const uint64_t number = attendance_.NextFor(slot);
  member.standing = number == 0;
  Append(number != 0 ? Enter(slot, number) : EpochActions{{Kind::kStands, member.newest(), slot}},
         &actions);
  return actions;
}

EpochActions HostRendezvous::Enter(int slot, uint64_t number) {
  LocalEpoch& epoch = attendance_.At(number);
  Attendant& member = attendance_.member(slot);
  member.standing = false;
  member.refused = epoch.aborted();
  if (member.refused) {
    member.refusing = number;  // once: the others are on their way to the next
    EpochActions refused = {{Kind::kRefuse, number, slot, 0, epoch.cause()}};
    attendance_.ForgetRefusing();
    return refused;
  }
  EpochActions actions;
  attendance_.Enter(slot, number);
  if (epoch.Enter(slot)) actions.push_back({Kind::kCreate, number, slot});
  actions.push_back({Kind::kStart, number, slot});
  AbortIfLacking(number, &actions, slot);
  return actions;
}

EpochActions HostRendezvous::Withdraw(int slot, uint64_t number) {
  if (IsAborted(number)) return {};
  LocalEpoch* epoch = Live(number);
  if (epoch == nullptr || !epoch->Withdraw(slot)) return OutOfTurn(slot, number);
  Attendant& member = attendance_.member(slot);
  member.last_epoch = member.epoch_before;
  return {{Kind::kWithdrawn, number, slot},
          {Kind::kRefuse, 0, slot, 0, "this rank has taken its join back"}};
}

// ---- who is in ----

EpochActions HostRendezvous::Address(int slot, uint64_t number, std::string address,
                                     uint64_t bytes) {
  if (IsAborted(number)) return {};
  LocalEpoch* epoch = Live(number);
  if (epoch == nullptr || !epoch->Address(slot, std::move(address))) return OutOfTurn(slot, number);
  EpochActions actions;
  if (epoch->Take(slot, bytes)) actions.push_back({Kind::kTake, number, slot, bytes});
  const std::string conflict = epoch->Conflict(slot, bytes);
  if (!conflict.empty()) {
    AbortOne(number, conflict, &actions);
  } else if (epoch->All(Stage::kAddressed)) {
    actions.push_back({Kind::kAddresses, number});
  }
  return actions;
}

EpochActions HostRendezvous::Ready(int slot, uint64_t number) {
  if (IsAborted(number)) return {};
  LocalEpoch* epoch = Live(number);
  if (epoch == nullptr || !epoch->Ready(slot)) return OutOfTurn(slot, number);
  if (!epoch->All(Stage::kReady)) return {};
  return {{Kind::kReady, number}};
}

EpochActions HostRendezvous::TableCame(uint64_t number) {
  EpochActions actions;
  const LocalEpoch* epoch = Live(number);
  for (int slot = 0; epoch != nullptr && slot < attendance_.slots(); ++slot) {
    if (epoch->addressed(slot)) actions.push_back({Kind::kTable, number, slot});
  }
  return actions;
}

EpochActions HostRendezvous::GoCame(uint64_t number) {
  EpochActions actions;
  LocalEpoch* epoch = Live(number);
  for (int slot = 0; epoch != nullptr && slot < attendance_.slots(); ++slot) {
    if (epoch->Go(slot)) actions.push_back({Kind::kGo, number, slot});
  }
  return actions;
}

// ---- who goes ----

EpochActions HostRendezvous::Leave(int slot, uint64_t number) {
  LocalEpoch* epoch = attendance_.Find(number);
  if (epoch == nullptr || !epoch->IsInside(slot)) return {};
  const bool finished = epoch->Leave(slot);
  EpochActions actions = {{Kind::kLeft, number, slot}};
  // Whoever leaves before the start is missed by those who wait for it.
  if (!finished) {
    AbortOne(number, absl::StrCat(epoch->NameOf(slot), " left before the epoch began"), &actions);
  }
  DisposeIfUnused(number, &actions);
  return actions;
}

EpochActions HostRendezvous::Abandon(int slot) {
  const uint64_t number = attendance_.last_epoch(slot);
  if (!IsAborted(number) || !attendance_.in_epoch(slot)) return {};
  EpochActions actions;
  attendance_.At(number).Abandon(slot);
  attendance_.member(slot).broke = true;
  DisposeIfUnused(number, &actions);
  return actions;
}

EpochActions HostRendezvous::Remove(int slot, const std::string& cause) {
  attendance_.member(slot).removed = cause;
  if (!std::exchange(attendance_.member(slot).standing, false)) return {};
  return {{Kind::kRemove, 0, slot, 0, cause}};
}

EpochActions HostRendezvous::Gone(int slot, const std::string& cause, bool lives) {
  EpochActions actions;
  Attendant& member = attendance_.member(slot);
  member.gone = cause;
  if (elastic_) member.standing = false;
  for (const uint64_t number : attendance_.Numbers()) {
    LocalEpoch& epoch = attendance_.At(number);
    const bool inside = epoch.IsInside(slot);
    if (!epoch.Lose(slot, elastic_ && lives)) continue;
    if (inside) member.broke = true;
    AbortOne(number, BehindStop(cause), &actions);
    DisposeIfUnused(number, &actions);
  }
  return actions;
}

// ---- how epochs end ----

void HostRendezvous::AbortOne(uint64_t number, const std::string& cause, EpochActions* actions) {
  LocalEpoch& epoch = attendance_.At(number);
  if (!epoch.Abort(InWords(cause))) return;
  if (epoch.created()) {
    actions->push_back({Kind::kAbort, number, -1, 0, epoch.cause()});
  } else {
    TellQuiet(number, actions);  // nobody enters it any more
  }
  for (int slot = 0; slot < attendance_.slots(); ++slot) {
    if (!epoch.IsWaiting(slot)) continue;
    actions->push_back({Kind::kRefuse, number, slot, 0, epoch.cause()});
    attendance_.member(slot).refused = true;
  }
}

EpochActions HostRendezvous::Abort(uint64_t number, const std::string& cause) {
  EpochActions actions;
  if (number == 0) {
    AbortCurrent(cause, &actions);
    return actions;
  }
  // One that is over for everybody here has nothing left to abort.
  const bool over = attendance_.Find(number) == nullptr && number <= attendance_.NewestEntered();
  if (!over) AbortOne(number, cause, &actions);
  return actions;
}

void HostRendezvous::AbortCurrent(const std::string& cause, EpochActions* actions) {
  bool any = false;
  for (const uint64_t number : attendance_.Numbers()) {
    if (!attendance_.At(number).begun()) continue;
    any = true;
    AbortOne(number, cause, actions);
  }
  if (!any) AbortOne(attendance_.NewestEntered() + 1, cause, actions);
}

EpochActions HostRendezvous::Stop(const std::string& cause) {
  EpochActions actions = Abort(0, cause);
  attendance_.Close(InWords(cause));
  RefuseStanding(&actions);
  return actions;
}

EpochActions HostRendezvous::Close(const std::string& cause) {
  EpochActions actions;
  attendance_.Close(InWords(cause));
  for (const uint64_t number : attendance_.Numbers()) {
    const LocalEpoch& epoch = attendance_.At(number);
    bool begins = false;
    for (int slot = 0; slot < attendance_.slots(); ++slot) begins |= epoch.IsWaiting(slot);
    if (begins) AbortOne(number, attendance_.closed(), &actions);
  }
  RefuseStanding(&actions);
  return actions;
}

void HostRendezvous::RefuseStanding(EpochActions* actions) {
  for (int slot = 0; slot < attendance_.slots(); ++slot) {
    Attendant& member = attendance_.member(slot);
    if (!std::exchange(member.standing, false)) continue;
    member.refused = true;
    actions->push_back({Kind::kRefuse, 0, slot, 0, attendance_.closed()});
  }
}

// A member that ends while the job stops does so for that.
std::string HostRendezvous::BehindStop(const std::string& cause) const {
  const std::string& closed = attendance_.closed();
  return closed.empty() ? cause : absl::StrCat(closed, "; ", cause);
}

void HostRendezvous::DisposeIfUnused(uint64_t number, EpochActions* actions) {
  const LocalEpoch& epoch = attendance_.At(number);
  if (!epoch.Unused()) return;
  if (epoch.created()) actions->push_back({Kind::kDispose, number});
  TellQuiet(number, actions);
  if (!epoch.aborted()) attendance_.Forget(number);  // an aborted one still refuses latecomers
}

void HostRendezvous::TellQuiet(uint64_t number, EpochActions* actions) {
  if (elastic_ && attendance_.At(number).TakeQuiet()) actions->push_back({Kind::kQuiet, number});
}

}  // namespace hvd::daemon
