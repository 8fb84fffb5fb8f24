// SPDX-License-Identifier: Apache-2.0
// The job on this host as it is decided: into which shares the host is divided, which member may
// have which slot, how far each is, and whether all has been told. Pure: the driver's words and
// what became of the ranks in, answers out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/job/launch_plan.h"
#include "daemon/job/rank_table.h"
#include "hvd/v1/link_a.pb.h"

namespace hvd::daemon {

// Elastic: who of those that are to be spawned gets a place.
struct Seating {
  v1::SpawnSlots seated;
  std::vector<v1::Seat> refused;
};

class HostJob {
 public:
  // InvalidArgument: the words make no sense. FailedPrecondition: the host has too little.
  static absl::StatusOr<HostJob> Make(const v1::PrepareHost& prepare, HostFacts facts);

  // In an elastic job its slots are the shares of now.
  const v1::PrepareHost& prepared() const { return prepared_; }
  const std::string& name() const { return prepared_.name(); }
  bool elastic() const { return prepared_.elastic(); }
  int slots() const { return ranks_.slots(); }
  const HostFacts& facts() const { return facts_; }
  const HostPlan& shares() const { return shares_; }

  // The epoch that is proposed. In a static job workers are placed by it.
  absl::StatusOr<EpochPlan> Propose(const v1::EpochPropose& propose);
  // Elastic: plans the world with these members, and the shares into which the host is divided from
  // now on. Members that run keep what they have.
  absl::Status Place(const v1::SpawnSlots& spawn);
  // It is free, and the newest plan has a rank for it.
  bool MayTake(const v1::Seat& seat) const;
  Seating SeatAll(const v1::SpawnSlots& spawn) const;
  void Take(const v1::Seat& seat);
  // Which share of the host the worker in this seat gets.
  int ShareOf(const v1::Seat& seat) const;
  // Returns the member's rank by the newest plan.
  int RankOf(int slot) const { return plan_->RankIn(slot); }
  // REQUIRES: there is a plan.
  SpawnContext context() const { return {prepared_, *plan_, facts_, shares_}; }

  void Started(int slot, int pid);
  // Whether a spawn that fails fails the launch: once, and not where it is that member's end alone.
  bool FailsLaunch();
  const RankDeath& Ended(RankDeath end) { return ranks_.Ended(std::move(end)); }
  void Drained(int slot, std::vector<std::string> lines) { ranks_.Drained(slot, std::move(lines)); }
  void LinkSpoke(int slot, LinkFacts facts) { ranks_.LinkSpoke(slot, std::move(facts)); }
  std::optional<RankDeath> TakeEnd(int slot);

  uint64_t member(int slot) const { return ranks_.member(slot); }
  bool vacant(int slot) const { return ranks_.vacant(slot); }
  // It is that member who runs there; a timer may outlive it.
  bool IsIn(int slot, uint64_t member) const;
  std::vector<int> Living() const;   // slots
  std::vector<int> Awaited() const;  // ranks that another launcher has started and nobody has seen
  // The whole end of every worker that was to be spawned.
  bool all_told() const { return ends_told_ >= spawned_; }

 private:
  HostJob(const v1::PrepareHost& prepare, HostFacts facts, HostPlan shares);

  v1::PrepareHost prepared_;
  HostFacts facts_;  // what a slot gets does not change with its workers
  HostPlan shares_;
  // The newest that has been proposed; elastic: the world by which the newest workers were placed.
  std::optional<EpochPlan> plan_;
  RankTable ranks_;
  bool any_started_ = false;
  bool launch_failed_ = false;
  int spawned_ = 0;  // slots that have got a member
  int ends_told_ = 0;
};

}  // namespace hvd::daemon
