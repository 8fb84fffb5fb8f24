#include "daemon/job/launch_plan.h"

#include <catch2/catch.hpp>

namespace hvd {
namespace {

v1::Launch TwoHosts() {
  v1::Launch launch;
  launch.set_job("feed");
  launch.set_host_index(1);
  launch.set_epoch_secret(std::string(32, 's'));
  for (const char* name : {"a", "b"}) {
    v1::HostShape& host = *launch.add_hosts();
    host.set_name(name);
    host.set_ranks(2);
  }
  launch.mutable_program()->add_argv("train");
  launch.mutable_program()->set_directory("/work");
  launch.mutable_program()->set_umask(027);
  return launch;
}

std::string ErrorOf(const v1::Launch& launch) {
  return std::string(PlanLaunch(launch).status().message());
}

TEST_CASE("the second host's ranks follow the first's") {
  v1::Launch launch = TwoHosts();
  launch.set_stdin_rank(3);
  const auto plan = PlanLaunch(launch);
  REQUIRE(plan.ok());
  CHECK(plan->host_name == "b");
  CHECK(plan->first_rank == 2);
  CHECK(plan->local_size == 2);
  CHECK(!plan->Feeds(0));
  CHECK(plan->Feeds(1));
}

TEST_CASE("stdin for none and for all") {
  v1::Launch launch = TwoHosts();
  launch.set_stdin_rank(-1);
  CHECK(!PlanLaunch(launch)->Feeds(0));
  launch.set_stdin_rank(-2);
  CHECK(PlanLaunch(launch)->Feeds(0));
}

TEST_CASE("an order carries identity, door and an even share of the cores") {
  const v1::Launch launch = TwoHosts();
  const auto plan = PlanLaunch(launch);
  HostFacts facts;
  facts.cores = {0, 1, 2, 3};
  const SpawnOrder order = OrderFor({1, "link", 197}, {launch, *plan, facts});
  CHECK(order.argv == std::vector<std::string>{"train"});
  CHECK(order.directory == "/work");
  CHECK(order.umask == 027);
  CHECK(order.door_fd == 197);
  CHECK(order.cores == std::vector<int>{2, 3});
  CHECK(std::count(order.environment.begin(), order.environment.end(), "HVD_RANK=3") == 1);
  CHECK(std::count(order.environment.begin(), order.environment.end(), "HVD_LINK=link") == 1);
}

TEST_CASE("more ranks than cores are pinned to as many each; none when the user says so") {
  v1::Launch launch = TwoHosts();
  const auto plan = PlanLaunch(launch);
  HostFacts facts;
  facts.cores = {5};
  CHECK(OrderFor({1, "", 197}, {launch, *plan, facts}).cores == std::vector<int>{5});
  facts.cores = {0, 1};
  CHECK(!OrderFor({0, "", 197}, {launch, *plan, facts}).cores.empty());
  launch.set_unbound(true);
  CHECK(OrderFor({0, "", 197}, {launch, *plan, facts}).cores.empty());
}

TEST_CASE("launches that make no sense say why") {
  v1::Launch launch = TwoHosts();
  launch.set_host_index(2);
  CHECK(ErrorOf(launch).find("no place for this host") != std::string::npos);
  launch = TwoHosts();
  launch.mutable_program()->clear_argv();
  CHECK(ErrorOf(launch).find("no command") != std::string::npos);
  launch = TwoHosts();
  launch.clear_epoch_secret();
  CHECK(ErrorOf(launch).find("secret") != std::string::npos);
  launch = TwoHosts();
  launch.mutable_hosts(1)->set_ranks(129);
  CHECK(ErrorOf(launch).find("at most 128") != std::string::npos);
}

}  // namespace
}  // namespace hvd
