// SPDX-License-Identifier: Apache-2.0
#include "daemon/job/host_job.h"

#include <set>
#include <utility>

#include "proto/page/host_page.h"

namespace hvd::daemon {

absl::StatusOr<HostJob> HostJob::Make(const v1::PrepareHost& prepare, HostFacts facts) {
  const absl::Status fine = CheckPrepare(prepare);
  if (!fine.ok()) return fine;
  absl::StatusOr<HostPlan> shares = PlanShares(prepare, facts.devices);
  if (!shares.ok()) return shares.status();
  return HostJob(prepare, std::move(facts), *std::move(shares));
}

HostJob::HostJob(const v1::PrepareHost& prepare, HostFacts facts, HostPlan shares)
    : prepared_(prepare),
      facts_(std::move(facts)),
      shares_(std::move(shares)),
      ranks_(prepare.elastic() ? kMaxLocalRanks : static_cast<int>(prepare.slots())) {}

// ---- places ----

absl::StatusOr<EpochPlan> HostJob::Propose(const v1::EpochPropose& propose) {
  absl::StatusOr<EpochPlan> plan = PlanEpoch(propose, prepared_);
  if (plan.ok() && plan->host >= 0 && !elastic()) plan_ = *plan;
  return plan;
}

absl::Status HostJob::Place(const v1::SpawnSlots& spawn) {
  absl::StatusOr<EpochPlan> plan = PlanEpoch(spawn.expected(), prepared_);
  if (!plan.ok()) return plan.status();
  if (plan->host < 0) return absl::InvalidArgumentError("the world that is told is without it");
  plan_ = *std::move(plan);
  if (spawn.shares() == 0 || spawn.shares() == shares_.slots.size()) return absl::OkStatus();
  v1::PrepareHost divided = prepared_;
  divided.set_slots(spawn.shares());
  absl::Status fine = CheckPrepare(divided);
  if (!fine.ok()) return fine;
  absl::StatusOr<HostPlan> shares = PlanShares(divided, facts_.devices);
  if (!shares.ok()) return shares.status();
  shares_ = *std::move(shares);
  prepared_.set_slots(spawn.shares());
  return absl::OkStatus();
}

bool HostJob::MayTake(const v1::Seat& seat) const {
  if (seat.slot() >= static_cast<uint32_t>(slots())) return false;
  const int slot = static_cast<int>(seat.slot());
  const bool free = member(slot) == 0 || (elastic() && ranks_.told(slot));
  return free && plan_.has_value() && plan_->LocalRankOf(slot) >= 0 &&
         (!elastic() || seat.share() < shares_.slots.size());
}

Seating HostJob::SeatAll(const v1::SpawnSlots& spawn) const {
  Seating seating = {spawn, {}};
  seating.seated.clear_seats();
  std::set<uint32_t> taken;
  for (const v1::Seat& seat : spawn.seats()) {
    if (MayTake(seat) && taken.insert(seat.slot()).second) {
      *seating.seated.add_seats() = seat;
    } else {
      seating.refused.push_back(seat);
    }
  }
  return seating;
}

void HostJob::Take(const v1::Seat& seat) {
  ranks_.Expect(static_cast<int>(seat.slot()), seat.member());
  ++spawned_;
}

int HostJob::ShareOf(const v1::Seat& seat) const {
  return static_cast<int>(elastic() ? seat.share() : seat.slot());
}

// ---- what becomes of the ranks ----

void HostJob::Started(int slot, int pid) {
  any_started_ = true;
  ranks_.Started(slot, pid);
}

// In an elastic job it is the member's, unless the host has never started any.
bool HostJob::FailsLaunch() {
  return !(elastic() && any_started_) && !std::exchange(launch_failed_, true);
}

std::optional<RankDeath> HostJob::TakeEnd(int slot) {
  std::optional<RankDeath> end = ranks_.TakeEnd(slot);
  if (end.has_value()) ++ends_told_;
  return end;
}

bool HostJob::IsIn(int slot, uint64_t member) const {
  return ranks_.member(slot) == member && !vacant(slot);
}

std::vector<int> HostJob::Living() const {
  std::vector<int> living;
  for (int slot = 0; slot < slots(); ++slot) {
    if (!vacant(slot)) living.push_back(slot);
  }
  return living;
}

std::vector<int> HostJob::Awaited() const {
  std::vector<int> ranks;
  for (const int slot : Living()) {
    if (!ranks_.started(slot)) ranks.push_back(RankOf(slot));
  }
  return ranks;
}

}  // namespace hvd::daemon
