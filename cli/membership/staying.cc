// SPDX-License-Identifier: Apache-2.0
#include "cli/membership/staying.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hvd::cli {

// If there are more members than there may be, those in the epoch stay first, then those on the
// older hosts.
void Staying::Choose() {
  using Order = std::tuple<bool, size_t, int, uint64_t>;  // joins, place in the list, share, member
  std::vector<Order> order;
  const auto& list = parts_.shares->list();
  for (uint64_t number = 1; number <= parts_.roster->newest(); ++number) {
    const RosterMember& member = parts_.roster->Of(number);
    const RosterHost& host = parts_.roster->host(member.host);
    const bool usable = !host.drained && host.phase == RosterHost::kReady;
    if (!member.alive || member.retired || !usable) continue;
    for (size_t place = 0; place < list.size(); ++place) {
      if (list[place].name != host.name || member.share >= list[place].shares) continue;
      order.push_back({!parts_.epochs->Has(number), place, member.share, number});
    }
  }
  std::sort(order.begin(), order.end());
  if (order.size() > static_cast<size_t>(most_)) order.resize(most_);
  members_.clear();
  for (const Order& each : order) members_.insert(std::get<3>(each));
  KeepTheState();
}

// Where nobody stays who has the state, those of the oldest host that is to go wait until others
// have it.
void Staying::KeepTheState() {
  kept_.clear();
  const Epochs& epochs = *parts_.epochs;
  // After a break by what its host has told; until then whoever was in the epoch counts, since it
  // hears of a change in a commit only, and has the state then.
  const auto holds = [&](uint64_t number) {
    const bool has = !epochs.last_broke() || parts_.roster->HostOf(number).kept.newest > 0;
    return parts_.roster->Of(number).last_rank >= 0 && has;
  };
  if (epochs.history().empty() || std::any_of(members_.begin(), members_.end(), holds)) return;
  // Nobody has committed anything, so that the program begins anew whoever stays.
  if (epochs.last_broke() && epochs.AllQuiet() && !epochs.MayBeCommitted()) return;
  KeepOneHost(epochs.last_broke() ? WhereTheStateIs() : epochs.last_members());
  if (kept_.empty()) KeepOneHost(epochs.last_broke() ? epochs.last_members() : WhereTheStateIs());
  members_.insert(kept_.begin(), kept_.end());
}

// The members on hosts that have the state: also those on their way there, since whoever had it has
// died.
std::vector<uint64_t> Staying::WhereTheStateIs() const {
  std::vector<uint64_t> there;
  for (uint64_t number = 1; number <= parts_.roster->newest(); ++number) {
    if (parts_.roster->HostOf(number).kept.newest > 0) there.push_back(number);
  }
  return there;
}

void Staying::KeepOneHost(const std::vector<uint64_t>& members) {
  int host = -1;
  for (const uint64_t number : members) {
    const RosterMember& member = parts_.roster->Of(number);
    const RosterHost& its = parts_.roster->host(member.host);
    const bool of_use = !parts_.shares->IsLeftOut(its.name) || its.kept.newest > 0;
    const bool may = member.alive && !member.retired && its.phase == RosterHost::kReady && of_use;
    if (may && host < 0) host = member.host;
    if (may && member.host == host) kept_.insert(number);
  }
}

std::set<uint64_t> Staying::Standing() const {
  std::set<uint64_t> standing;
  for (const uint64_t member : members_) {
    if (parts_.roster->Of(member).stands) standing.insert(member);
  }
  return standing;
}

bool Staying::SurvivorsStand() const {
  const auto& members = parts_.epochs->current().members;
  return std::all_of(members.begin(), members.end(), [this](uint64_t number) {
    const RosterMember& member = parts_.roster->Of(number);
    return !member.alive || !Has(number) || member.stands;
  });
}

void Staying::Retire(uint64_t member, bool removed, const std::string& cause) {
  RosterMember& retired = parts_.roster->Of(member);
  retired.retired = true;
  retired.given_up = !removed;
  members_.erase(member);
  MembershipAction action = {MembershipAction::kRetire, retired.host, cause, member};
  action.removed = removed;
  parts_.wants->Add(std::move(action));
}

void Staying::SayKept(bool over) {
  const RosterHost* const kept = kept_.empty() ? nullptr : &parts_.roster->HostOf(*kept_.begin());
  const bool listed = kept != nullptr && parts_.shares->Find(kept->name) != nullptr;
  const bool goes = kept != nullptr && (kept->drained || !listed) && !over;
  const bool told = std::exchange(kept_told_, goes);
  if (!goes || told) return;
  parts_.wants->Say(absl::StrCat(
      "host ", kept->name, listed ? " is to go" : " is not in the list of hosts any more",
      ", but its ranks go on: no other host has the state of the job; they leave as "
      "soon as one has it"));
}

}  // namespace hvd::cli
