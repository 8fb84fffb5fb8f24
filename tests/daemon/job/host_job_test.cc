// SPDX-License-Identifier: Apache-2.0
#include "daemon/job/host_job.h"

#include <catch2/catch.hpp>
#include <csignal>

namespace hvd::daemon {
namespace {

v1::PrepareHost Host(bool elastic, uint32_t slots = 2) {
  v1::PrepareHost prepare;
  prepare.set_job("feed");
  prepare.set_name("here");
  prepare.set_slots(slots);
  prepare.set_elastic(elastic);
  prepare.set_unbound(true);
  prepare.set_gpus_per_rank(0);
  prepare.set_epoch_secret(std::string(32, 's'));
  prepare.mutable_program()->add_argv("train");
  return prepare;
}

HostJob Job(bool elastic) {
  HostFacts facts;
  facts.devices.cores = {0, 1};
  return *HostJob::Make(Host(elastic), facts);
}

v1::Seat Seat(uint64_t member, uint32_t slot, uint32_t share = 0) {
  v1::Seat seat;
  seat.set_member(member);
  seat.set_slot(slot);
  seat.set_share(share);
  return seat;
}

// An epoch of this host alone, with members 1, 2, … in these slots.
v1::EpochPropose Epoch(const std::vector<uint32_t>& slots) {
  v1::EpochPropose propose;
  propose.set_epoch(1);
  v1::EpochHost& host = *propose.add_hosts();
  host.set_name("here");
  uint64_t member = 0;
  for (const uint32_t slot : slots) *host.add_members() = Seat(++member, slot);
  return propose;
}

v1::SpawnSlots Order(const std::vector<v1::Seat>& seats, const std::vector<uint32_t>& world) {
  v1::SpawnSlots spawn;
  for (const v1::Seat& seat : seats) *spawn.add_seats() = seat;
  *spawn.mutable_expected() = Epoch(world);
  return spawn;
}

// All three sides have spoken of the worker in the slot.
void End(HostJob* job, int slot) {
  RankDeath death;
  death.slot = slot;
  death.status = SIGKILL;
  job->Ended(death);
  job->Drained(slot, {});
  job->LinkSpoke(slot, LinkFacts());
}

TEST_CASE("a slot may be taken once, by a member of an epoch that has been proposed") {
  HostJob job = Job(false);
  CHECK(job.slots() == 2);
  CHECK_FALSE(job.MayTake(Seat(1, 0)));
  REQUIRE(job.Propose(Epoch({0, 1})).ok());
  CHECK(job.MayTake(Seat(1, 0)));
  CHECK_FALSE(job.MayTake(Seat(3, 2)));
  job.Take(Seat(1, 0));
  CHECK_FALSE(job.MayTake(Seat(1, 0)));
  CHECK(job.member(0) == 1);
  CHECK(job.RankOf(1) == 1);
  CHECK(job.ShareOf(Seat(2, 1)) == 1);
}

TEST_CASE("a static job's slot is free for nobody when its worker has ended") {
  HostJob job = Job(false);
  REQUIRE(job.Propose(Epoch({0, 1})).ok());
  job.Take(Seat(1, 0));
  End(&job, 0);
  REQUIRE(job.TakeEnd(0).has_value());
  CHECK_FALSE(job.MayTake(Seat(9, 0)));
}

TEST_CASE("an elastic job's slot is free when its worker's whole end has been told") {
  HostJob job = Job(true);
  REQUIRE(job.Place(Order({Seat(1, 5)}, {5})).ok());
  job.Take(Seat(1, 5));
  End(&job, 5);
  CHECK(job.vacant(5));
  CHECK_FALSE(job.MayTake(Seat(2, 5)));
  REQUIRE(job.TakeEnd(5).has_value());
  CHECK(job.MayTake(Seat(2, 5)));
}

TEST_CASE("of those that want one slot the first has it, and a share that is none has nobody") {
  HostJob job = Job(true);
  const v1::SpawnSlots order = Order({Seat(1, 0), Seat(2, 0), Seat(3, 1, 7)}, {0, 1});
  REQUIRE(job.Place(order).ok());
  const Seating seating = job.SeatAll(order);
  REQUIRE(seating.seated.seats_size() == 1);
  CHECK(seating.seated.seats(0).member() == 1);
  REQUIRE(seating.refused.size() == 2);
  CHECK(seating.refused[0].member() == 2);
  CHECK(seating.refused[1].member() == 3);
}

TEST_CASE("an order may divide the host anew for those who come with it") {
  HostJob job = Job(true);
  v1::SpawnSlots order = Order({Seat(1, 0, 2)}, {0});
  order.set_shares(3);
  REQUIRE(job.Place(order).ok());
  CHECK(job.shares().slots.size() == 3);
  CHECK(job.prepared().slots() == 3);
  CHECK(job.slots() > 3);
  CHECK(job.MayTake(Seat(1, 0, 2)));
}

TEST_CASE("a world without this host places nobody") {
  HostJob job = Job(true);
  v1::SpawnSlots order = Order({Seat(1, 0)}, {0});
  order.mutable_expected()->mutable_hosts(0)->set_host(4);
  CHECK_FALSE(job.Place(order).ok());
  CHECK_FALSE(job.MayTake(Seat(1, 0)));
}

TEST_CASE("a failed spawn fails a launch once, and an elastic one only before any start") {
  HostJob fixed = Job(false);
  CHECK(fixed.FailsLaunch());
  CHECK_FALSE(fixed.FailsLaunch());
  HostJob elastic = Job(true);
  REQUIRE(elastic.Place(Order({Seat(1, 0)}, {0})).ok());
  elastic.Take(Seat(1, 0));
  elastic.Started(0, 100);
  CHECK_FALSE(elastic.FailsLaunch());
}

TEST_CASE("who lives, who is awaited and who is told of") {
  HostJob job = Job(false);
  REQUIRE(job.Propose(Epoch({0, 1})).ok());
  CHECK(job.all_told());
  for (const uint32_t slot : {0, 1}) job.Take(Seat(slot + 1, slot));
  CHECK_FALSE(job.all_told());
  CHECK(job.Living() == std::vector<int>{0, 1});
  job.Started(0, 100);
  CHECK(job.Awaited() == std::vector<int>{1});
  End(&job, 0);
  CHECK(job.Living() == std::vector<int>{1});
  CHECK(job.TakeEnd(0)->pid == 100);
  End(&job, 1);
  CHECK_FALSE(job.all_told());
  job.TakeEnd(1);
  CHECK(job.all_told());
}

TEST_CASE("a timer that outlives its member finds another in the slot") {
  HostJob job = Job(true);
  REQUIRE(job.Place(Order({Seat(1, 0)}, {0})).ok());
  job.Take(Seat(1, 0));
  CHECK(job.IsIn(0, 1));
  End(&job, 0);
  CHECK_FALSE(job.IsIn(0, 1));
  job.TakeEnd(0);
  job.Take(Seat(2, 0));
  CHECK_FALSE(job.IsIn(0, 1));
  CHECK(job.IsIn(0, 2));
}

TEST_CASE("words that make no sense make no job") {
  CHECK_FALSE(HostJob::Make(Host(false, 0), HostFacts()).ok());
}

}  // namespace
}  // namespace hvd::daemon
