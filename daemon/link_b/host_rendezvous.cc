// SPDX-License-Identifier: Apache-2.0
#include "daemon/link_b/host_rendezvous.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hvd {

using Kind = EpochAction::Kind;

namespace {

constexpr const char* kStopped = "the job was stopped";

}  // namespace

int EpochPlan::LocalRankOf(int slot) const {
  const auto found = std::find(slots.begin(), slots.end(), slot);
  return found == slots.end() ? -1 : static_cast<int>(found - slots.begin());
}

HostRendezvous::HostRendezvous(int slots, bool elastic)
    : slots_(slots),
      elastic_(elastic),
      standing_(slots),
      last_epoch_(slots),
      epoch_before_(slots),
      refusing_(slots),
      gone_(slots),
      broke_(slots),
      refused_(slots),
      removed_(slots) {}

HostRendezvous::Epoch& HostRendezvous::At(uint64_t number) {
  Epoch& epoch = epochs_[number];
  epoch.stages.resize(slots_, Stage::kOutside);
  return epoch;
}

const EpochPlan* HostRendezvous::plan(uint64_t number) const {
  const auto found = epochs_.find(number);
  return found == epochs_.end() ? nullptr : found->second.plan.get();
}

const EpochPlan* HostRendezvous::newest_plan(int slot) const {
  const auto found = newest_plans_.find(slot);
  return found == newest_plans_.end() ? nullptr : found->second.get();
}

std::string HostRendezvous::NameIn(const Epoch& epoch, int slot) {
  return absl::StrCat("rank ", epoch.plan->RankOf(epoch.plan->LocalRankOf(slot)));
}

EpochActions HostRendezvous::Propose(EpochPlan plan) {
  Epoch& epoch = At(plan.epoch);
  epoch.addresses.resize(plan.slots.size());
  for (int slot = 0; slot < slots_; ++slot) {
    if (plan.LocalRankOf(slot) < 0) epoch.stages[slot] = Stage::kAbsent;
  }
  const uint64_t number = plan.epoch;
  const auto proposed = std::make_shared<const EpochPlan>(std::move(plan));
  epoch.plan = proposed;
  for (const int slot : proposed->slots) newest_plans_[slot] = proposed;
  EpochActions actions;
  if (elastic_) AbortIfLacking(number, &actions);
  for (const int slot : proposed->slots) {
    if (!standing_[slot] || NextFor(slot) != number) continue;
    const EpochActions entered = Enter(slot, number);
    actions.insert(actions.end(), entered.begin(), entered.end());
  }
  return actions;
}

// Elastic: the death of a member that stood may have crossed the proposal that lists it. It never
// comes, so nobody is to enter.
void HostRendezvous::AbortIfLacking(uint64_t number, EpochActions* actions) {
  for (const int slot : epochs_[number].plan->slots) {
    if (!gone_[slot].empty()) return AbortOne(number, gone_[slot], actions);
  }
}

bool HostRendezvous::All(const Epoch& epoch, Stage stage) const {
  return std::all_of(epoch.stages.begin(), epoch.stages.end(),
                     [stage](Stage each) { return each == stage || each == Stage::kAbsent; });
}

bool HostRendezvous::IsInside(Stage stage) {
  return stage == Stage::kJoined || stage == Stage::kAddressed || stage == Stage::kReady ||
         stage == Stage::kRunning;
}

bool HostRendezvous::in_epoch(int slot) const {
  return std::any_of(epochs_.begin(), epochs_.end(),
                     [slot](const auto& entry) { return IsInside(entry.second.stages[slot]); });
}

bool HostRendezvous::in_live_epoch(int slot) const {
  const auto found = epochs_.find(last_epoch_[slot]);
  return found != epochs_.end() && found->second.aborted.empty() && in_epoch(slot);
}

bool HostRendezvous::after_abort(int slot) const {
  const auto found = epochs_.find(last_epoch_[slot]);
  const bool aborted = found != epochs_.end() && !found->second.aborted.empty();
  return aborted || refused_[slot] || !stopped_.empty();
}

bool HostRendezvous::addressed(int slot, uint64_t number) const {
  const auto found = epochs_.find(number);
  return found != epochs_.end() && found->second.aborted.empty() &&
         found->second.stages[slot] == Stage::kAddressed;
}

// 0: none has been proposed.
uint64_t HostRendezvous::NextFor(int slot) const {
  for (auto each = epochs_.upper_bound(NewestOf(slot)); each != epochs_.end(); ++each) {
    if (each->second.plan != nullptr && each->second.stages[slot] != Stage::kAbsent)
      return each->first;
  }
  return 0;
}

EpochActions HostRendezvous::Join(int slot) {
  EpochActions actions = Abandon(slot);
  if (in_epoch(slot)) {
    return {
        {Kind::kRefuse, 0, slot, 0, "this rank is in an epoch already; it must leave it first"}};
  }
  if (!stopped_.empty()) {
    actions.push_back({Kind::kRefuse, 0, slot, 0, stopped_});
    return actions;
  }
  if (!removed_[slot].empty()) {
    actions.push_back({Kind::kRemove, 0, slot, 0, removed_[slot]});
    return actions;
  }
  if (elastic_) gone_[slot].clear();  // it is there, whatever it failed at before
  const uint64_t number = NextFor(slot);
  standing_[slot] = number == 0;
  const EpochActions next =
      number != 0 ? Enter(slot, number) : EpochActions{{Kind::kStands, NewestOf(slot), slot}};
  actions.insert(actions.end(), next.begin(), next.end());
  return actions;
}

EpochActions HostRendezvous::Enter(int slot, uint64_t number) {
  Epoch& epoch = At(number);
  standing_[slot] = false;
  refused_[slot] = !epoch.aborted.empty();
  if (refused_[slot]) {
    refusing_[slot] = number;  // once: the others are on their way to the next
    EpochActions refused = {{Kind::kRefuse, number, slot, 0, epoch.aborted}};
    ForgetRefusing();
    return refused;
  }
  EpochActions actions;
  epoch_before_[slot] = std::exchange(last_epoch_[slot], number);
  ForgetRefusing();
  broke_[slot] = false;
  epoch.stages[slot] = Stage::kJoined;
  if (!std::exchange(epoch.created, true)) actions.push_back({Kind::kCreate, number, slot});
  actions.push_back({Kind::kStart, number, slot});
  for (const int other : epoch.plan->slots) {
    if (!gone_[other].empty() && other != slot) {
      AbortOne(number, gone_[other], &actions);
      break;
    }
  }
  return actions;
}

// A step that only counts when the rank stands right before it; anything else is a confused client.
EpochActions HostRendezvous::Move(int slot, uint64_t number, Stage from, Stage to) {
  const auto found = epochs_.find(number);
  if (found == epochs_.end() || found->second.stages[slot] != from) {
    return {{Kind::kRefuse, number, slot, 0, absl::StrCat("out of turn in epoch ", number)}};
  }
  found->second.stages[slot] = to;
  return {};
}

EpochActions HostRendezvous::Withdraw(int slot, uint64_t number) {
  const auto found = epochs_.find(number);
  if (found != epochs_.end() && !found->second.aborted.empty()) return {};
  EpochActions actions = Move(slot, number, Stage::kJoined, Stage::kOutside);
  if (!actions.empty()) return actions;
  last_epoch_[slot] = epoch_before_[slot];
  return {{Kind::kWithdrawn, number, slot},
          {Kind::kRefuse, 0, slot, 0, "this rank has taken its join back"}};
}

EpochActions HostRendezvous::Address(int slot, uint64_t number, std::string address,
                                     uint64_t bytes) {
  const auto found = epochs_.find(number);
  if (found != epochs_.end() && !found->second.aborted.empty()) return {};
  EpochActions actions = Move(slot, number, Stage::kJoined, Stage::kAddressed);
  if (!actions.empty()) return actions;
  Epoch& epoch = At(number);
  epoch.addresses[epoch.plan->LocalRankOf(slot)] = std::move(address);
  if (epoch.first_to_say < 0) {
    epoch.first_to_say = slot;
    epoch.bytes = bytes;
    actions.push_back({Kind::kTake, number, slot, bytes});
  }
  if (bytes != epoch.bytes) {
    AbortOne(number,
             absl::StrCat(NameIn(epoch, slot), " asks for ", bytes, " bytes of host memory, ",
                          NameIn(epoch, epoch.first_to_say), " for ", epoch.bytes,
                          "; all ranks of a host must run with the same HVD settings"),
             &actions);
    return actions;
  }
  if (All(epoch, Stage::kAddressed)) actions.push_back({Kind::kAddresses, number});
  return actions;
}

EpochActions HostRendezvous::Ready(int slot, uint64_t number) {
  const auto found = epochs_.find(number);
  if (found != epochs_.end() && !found->second.aborted.empty()) return {};
  EpochActions actions = Move(slot, number, Stage::kAddressed, Stage::kReady);
  if (actions.empty() && All(At(number), Stage::kReady)) actions.push_back({Kind::kReady, number});
  return actions;
}

EpochActions HostRendezvous::Leave(int slot, uint64_t number) {
  EpochActions actions;
  const auto found = epochs_.find(number);
  if (found == epochs_.end()) return actions;
  Stage& stage = found->second.stages[slot];
  if (!IsInside(stage)) return actions;
  const bool finished = stage == Stage::kRunning;
  stage = Stage::kLeft;
  actions.push_back({Kind::kLeft, number, slot});
  // Whoever leaves before the start is missed by those who wait for it.
  if (!finished) {
    AbortOne(number, absl::StrCat(NameIn(found->second, slot), " left before the epoch began"),
             &actions);
  }
  DisposeIfUnused(number, &actions);
  return actions;
}

EpochActions HostRendezvous::Abandon(int slot) {
  EpochActions actions;
  const auto found = epochs_.find(last_epoch_[slot]);
  if (found == epochs_.end() || found->second.aborted.empty() || !in_epoch(slot)) return actions;
  found->second.stages[slot] = Stage::kGone;
  broke_[slot] = true;
  DisposeIfUnused(last_epoch_[slot], &actions);
  return actions;
}

EpochActions HostRendezvous::Remove(int slot, const std::string& cause) {
  removed_[slot] = cause;
  if (!standing_[slot]) return {};
  standing_[slot] = false;
  return {{Kind::kRemove, 0, slot, 0, cause}};
}

// Epochs that list the slot mean the member before.
void HostRendezvous::Reset(int slot) {
  for (auto& [number, epoch] : epochs_) epoch.stages[slot] = Stage::kAbsent;
  newest_plans_.erase(slot);
  standing_[slot] = broke_[slot] = refused_[slot] = false;
  last_epoch_[slot] = epoch_before_[slot] = refusing_[slot] = 0;
  gone_[slot].clear();
  removed_[slot].clear();
}

EpochActions HostRendezvous::Gone(int slot, const std::string& cause, bool lives) {
  EpochActions actions;
  gone_[slot] = cause;
  if (elastic_) standing_[slot] = false;
  std::vector<uint64_t> numbers;
  for (const auto& [number, epoch] : epochs_) numbers.push_back(number);
  for (const uint64_t number : numbers) {
    Epoch& epoch = epochs_[number];
    Stage& stage = epoch.stages[slot];
    const bool begun = epoch.created || !epoch.aborted.empty();
    const bool lost = stage == Stage::kLost;
    if (!IsInside(stage) && !lost && (stage != Stage::kOutside || !begun)) continue;
    if (IsInside(stage)) broke_[slot] = true;
    stage = elastic_ && lives && stage != Stage::kOutside ? Stage::kLost : Stage::kGone;
    AbortOne(number, BehindStop(cause), &actions);
    DisposeIfUnused(number, &actions);
  }
  return actions;
}

EpochActions HostRendezvous::TableCame(uint64_t number) {
  EpochActions actions;
  const auto found = epochs_.find(number);
  if (found == epochs_.end() || !found->second.aborted.empty()) return actions;
  for (int slot = 0; slot < slots_; ++slot) {
    if (found->second.stages[slot] == Stage::kAddressed) {
      actions.push_back({Kind::kTable, number, slot});
    }
  }
  return actions;
}

EpochActions HostRendezvous::GoCame(uint64_t number) {
  EpochActions actions;
  const auto found = epochs_.find(number);
  if (found == epochs_.end() || !found->second.aborted.empty()) return actions;
  for (int slot = 0; slot < slots_; ++slot) {
    Stage& stage = found->second.stages[slot];
    if (stage != Stage::kReady) continue;
    stage = Stage::kRunning;
    actions.push_back({Kind::kGo, number, slot});
  }
  return actions;
}

void HostRendezvous::AbortOne(uint64_t number, const std::string& cause, EpochActions* actions) {
  Epoch& epoch = At(number);
  if (!epoch.aborted.empty()) return;
  epoch.aborted = cause.empty() ? kStopped : cause;
  if (epoch.created) {
    actions->push_back({Kind::kAbort, number, -1, 0, epoch.aborted});
  } else {
    TellQuiet(number, actions);  // nobody enters it any more
  }
  for (int slot = 0; slot < slots_; ++slot) {
    const Stage stage = epoch.stages[slot];
    if (stage == Stage::kJoined || stage == Stage::kAddressed || stage == Stage::kReady) {
      actions->push_back({Kind::kRefuse, number, slot, 0, epoch.aborted});
      refused_[slot] = true;
    }
  }
}

EpochActions HostRendezvous::Abort(uint64_t number, const std::string& cause) {
  EpochActions actions;
  if (number != 0) {
    // One that is over for everybody here has nothing left to abort.
    const bool over = epochs_.count(number) == 0 &&
                      number <= *std::max_element(last_epoch_.begin(), last_epoch_.end());
    if (!over) AbortOne(number, cause, &actions);
    return actions;
  }
  std::vector<uint64_t> numbers;
  for (const auto& [each, epoch] : epochs_) {
    if (epoch.created || !epoch.aborted.empty()) numbers.push_back(each);
  }
  if (numbers.empty()) {
    numbers.push_back(*std::max_element(last_epoch_.begin(), last_epoch_.end()) + 1);
  }
  for (const uint64_t each : numbers) AbortOne(each, cause, &actions);
  return actions;
}

EpochActions HostRendezvous::Stop(const std::string& cause) {
  EpochActions actions = Abort(0, cause);
  stopped_ = cause.empty() ? kStopped : cause;
  RefuseStanding(&actions);
  return actions;
}

EpochActions HostRendezvous::Close(const std::string& cause) {
  EpochActions actions;
  stopped_ = cause.empty() ? kStopped : cause;
  for (auto& [number, epoch] : epochs_) {
    const bool begins = std::any_of(epoch.stages.begin(), epoch.stages.end(), [](Stage stage) {
      return stage == Stage::kJoined || stage == Stage::kAddressed || stage == Stage::kReady;
    });
    if (begins) AbortOne(number, stopped_, &actions);
  }
  RefuseStanding(&actions);
  return actions;
}

void HostRendezvous::RefuseStanding(EpochActions* actions) {
  for (int slot = 0; slot < slots_; ++slot) {
    if (!standing_[slot]) continue;
    standing_[slot] = false;
    refused_[slot] = true;
    actions->push_back({Kind::kRefuse, 0, slot, 0, stopped_});
  }
}

// A member that ends while the job stops does so for that.
std::string HostRendezvous::BehindStop(const std::string& cause) const {
  return stopped_.empty() ? cause : absl::StrCat(stopped_, "; ", cause);
}

bool HostRendezvous::Unused(const Epoch& epoch) const {
  return std::all_of(epoch.stages.begin(), epoch.stages.end(), [&epoch](Stage stage) {
    return stage == Stage::kLeft || stage == Stage::kGone || stage == Stage::kAbsent ||
           (stage == Stage::kOutside && !epoch.aborted.empty());
  });
}

void HostRendezvous::DisposeIfUnused(uint64_t number, EpochActions* actions) {
  const Epoch& epoch = epochs_[number];
  if (!Unused(epoch)) return;
  if (epoch.created) actions->push_back({Kind::kDispose, number});
  TellQuiet(number, actions);
  if (epoch.aborted.empty()) epochs_.erase(number);  // an aborted one still refuses latecomers
}

void HostRendezvous::TellQuiet(uint64_t number, EpochActions* actions) {
  Epoch& epoch = epochs_[number];
  if (!elastic_ || epoch.plan == nullptr || std::exchange(epoch.quiet, true)) return;
  actions->push_back({Kind::kQuiet, number});
}

// Epochs that have refused, or held, every member.
void HostRendezvous::ForgetRefusing() {
  uint64_t all_beyond = std::numeric_limits<uint64_t>::max();
  for (const auto& [slot, plan] : newest_plans_) {
    if (elastic_ && !(gone_[slot].empty() && removed_[slot].empty())) continue;  // never asks again
    all_beyond = std::min(all_beyond, NewestOf(slot));
  }
  for (auto each = epochs_.begin(); each != epochs_.end() && each->first < all_beyond;) {
    each = Unused(each->second) ? epochs_.erase(each) : std::next(each);
  }
}

}  // namespace hvd
