// SPDX-License-Identifier: Apache-2.0
#include "daemon/job/launch_plan.h"

#include <catch2/catch.hpp>

namespace hvd::daemon {
namespace {

// Returns what the second host of two is told, with two slots each.
v1::PrepareHost SecondHost() {
  v1::PrepareHost prepare;
  prepare.set_job("feed");
  prepare.set_host(1);
  prepare.set_name("b");
  prepare.set_slots(2);
  prepare.set_epoch_secret(std::string(32, 's'));
  prepare.mutable_program()->add_argv("train");
  prepare.mutable_program()->set_directory("/work");
  prepare.mutable_program()->set_umask(027);
  return prepare;
}

v1::EpochPropose BothHosts() {
  v1::EpochPropose propose;
  propose.set_epoch(1);
  uint64_t member = 0;
  for (const char* name : {"a", "b"}) {
    v1::EpochHost& host = *propose.add_hosts();
    host.set_host(propose.hosts_size() - 1);
    host.set_name(name);
    for (const uint32_t slot : {0, 1}) {
      v1::Seat& seat = *host.add_members();
      seat.set_member(++member);
      seat.set_slot(slot);
    }
  }
  return propose;
}

EpochPlan PlanOf(const v1::EpochPropose& propose) { return *PlanEpoch(propose, SecondHost()); }

SpawnOrder Order(int slot, const v1::PrepareHost& prepare, const HostFacts& facts) {
  const HostPlan shares = *PlanShares(prepare, facts.devices);
  return OrderFor({slot, "link", 197, slot}, {prepare, PlanOf(BothHosts()), facts, shares});
}

std::string ErrorOf(const v1::PrepareHost& prepare) {
  return std::string(CheckPrepare(prepare).message());
}

TEST_CASE("the second host's ranks follow the first's") {
  const EpochPlan plan = PlanOf(BothHosts());
  CHECK(plan.epoch == 1);
  CHECK(plan.host == 1);
  CHECK(plan.topology.size() == 4);
  CHECK(plan.slots == std::vector<int>{0, 1});
  CHECK(plan.RankOf(plan.LocalRankOf(1)) == 3);
}

TEST_CASE("ranks follow the order of members, not that of slots or of hosts' numbers") {
  v1::EpochPropose propose = BothHosts();
  propose.mutable_hosts()->SwapElements(0, 1);
  propose.mutable_hosts(0)->mutable_members()->SwapElements(0, 1);
  const EpochPlan plan = PlanOf(propose);
  CHECK(plan.host == 0);
  CHECK(plan.RankOf(plan.LocalRankOf(1)) == 0);
  CHECK(plan.RankOf(plan.LocalRankOf(0)) == 1);
}

TEST_CASE("an epoch without a slot, or without a host") {
  v1::EpochPropose propose = BothHosts();
  propose.mutable_hosts(1)->mutable_members()->RemoveLast();
  CHECK(PlanOf(propose).LocalRankOf(1) == -1);
  propose.mutable_hosts()->RemoveLast();
  CHECK(PlanOf(propose).host == -1);
}

TEST_CASE("epochs that make no sense say why") {
  v1::EpochPropose propose = BothHosts();
  propose.mutable_hosts(1)->mutable_members(0)->set_slot(2);
  CHECK(PlanEpoch(propose, SecondHost()).status().message() ==
        "an epoch has a member in slot 2 of b, which has 2");
  propose.mutable_hosts(0)->clear_members();
  CHECK(PlanEpoch(propose, SecondHost()).status().message() == "a host of an epoch has no rank");
}

TEST_CASE("an order carries identity, door and an even share of the cores") {
  const v1::PrepareHost prepare = SecondHost();
  HostFacts facts;
  facts.devices.cores = {0, 1, 2, 3};
  const SpawnOrder order = Order(1, prepare, facts);
  CHECK(order.argv == std::vector<std::string>{"train"});
  CHECK(order.directory == "/work");
  CHECK(order.umask == 027);
  CHECK(order.door_fd == 197);
  CHECK(order.cores == std::vector<int>{2, 3});
  CHECK(std::count(order.environment.begin(), order.environment.end(), "HVD_RANK=3") == 1);
  CHECK(std::count(order.environment.begin(), order.environment.end(), "HVD_LINK=link") == 1);
}

TEST_CASE(
    "in an elastic job slots go beyond the shares, and a worker has the share that it is told") {
  v1::PrepareHost prepare = SecondHost();
  prepare.set_elastic(true);
  v1::EpochPropose propose = BothHosts();
  propose.mutable_hosts(1)->mutable_members(0)->set_slot(77);
  propose.set_resume_commit(41);
  propose.set_root(2);
  propose.add_needy(1);
  propose.set_rolls_back(true);
  propose.mutable_hosts(1)->set_void_state(true);
  const EpochPlan plan = *PlanEpoch(propose, prepare);
  CHECK(plan.LocalRankOf(77) == 0);
  CHECK(plan.state.resume_commit == 41);
  CHECK(plan.state.root == 2);
  CHECK(plan.state.needy == std::vector<int>{1});
  CHECK(plan.state.rolls_back);
  CHECK(plan.state.is_void);
  HostFacts facts;
  facts.devices.cores = {0, 1, 2, 3};
  const HostPlan shares = *PlanShares(prepare, facts.devices);
  const SpawnOrder order = OrderFor({77, "link", 197, 1, 9}, {prepare, plan, facts, shares});
  CHECK(order.cores == std::vector<int>{2, 3});
  const auto holds = [&order](const std::string& entry) {
    return std::count(order.environment.begin(), order.environment.end(), entry) == 1;
  };
  CHECK(holds("HVD_RANK=2"));
  CHECK(holds("HVD_ELASTIC=1"));
  CHECK(holds("HOROVOD_ELASTIC=1"));
  CHECK(holds("HVD_MEMBER_MARK=" + prepare.job() + ".9"));
}

TEST_CASE("more ranks than cores are pinned to as many each; none when the user says so") {
  v1::PrepareHost prepare = SecondHost();
  HostFacts facts;
  facts.devices.cores = {5};
  CHECK(Order(1, prepare, facts).cores == std::vector<int>{5});
  facts.devices.cores = {0, 1};
  CHECK(!Order(0, prepare, facts).cores.empty());
  prepare.set_unbound(true);
  CHECK(Order(0, prepare, facts).cores.empty());
}

TEST_CASE("an order carries the slot's GPUs, and the driver hears of them") {
  v1::PrepareHost prepare = SecondHost();
  HostFacts facts;
  facts.devices.cores = {0, 1};
  facts.devices.gpus = {{"GPU-a", "A"}, {"GPU-b", "B"}};
  const auto holds = [&](const std::string& entry) {
    const auto environment = Order(1, prepare, facts).environment;
    return std::count(environment.begin(), environment.end(), entry) == 1;
  };
  CHECK(holds("CUDA_VISIBLE_DEVICES=GPU-a,GPU-b"));
  prepare.set_gpus_per_rank(1);
  CHECK(holds("CUDA_VISIBLE_DEVICES=GPU-b"));
  v1::Launched launched;
  TellShares(*PlanShares(prepare, facts.devices), &launched);
  REQUIRE(launched.shares_size() == 2);
  const v1::SlotShare& told = launched.shares(1);
  CHECK(told.slot() == 1);
  CHECK(told.cores(0) == 1);
  CHECK(told.gpus(0).uuid() == "GPU-b");
  CHECK(told.gpus(0).name() == "B");
  CHECK(told.visible() == 1);
  CHECK_FALSE(told.shared());
  prepare.set_gpus_per_rank(2);
  CHECK(PlanShares(prepare, facts.devices).status().message().find("needs 4 GPUs") !=
        std::string::npos);
  prepare.set_gpus_per_rank(0);
  CHECK_FALSE(holds("CUDA_VISIBLE_DEVICES=GPU-b"));
}

TEST_CASE("launches that make no sense say why") {
  CHECK(ErrorOf(SecondHost()).empty());
  v1::PrepareHost prepare = SecondHost();
  prepare.set_slots(0);
  CHECK(ErrorOf(prepare).find("no slot on this host") != std::string::npos);
  prepare = SecondHost();
  prepare.mutable_program()->clear_argv();
  CHECK(ErrorOf(prepare).find("no command") != std::string::npos);
  prepare = SecondHost();
  prepare.clear_epoch_secret();
  CHECK(ErrorOf(prepare).find("secret") != std::string::npos);
  prepare = SecondHost();
  prepare.set_slots(129);
  CHECK(ErrorOf(prepare).find("at most 128") != std::string::npos);
}

}  // namespace
}  // namespace hvd::daemon
