// SPDX-License-Identifier: Apache-2.0
#include "hostfile/topology.h"

#include <catch2/catch.hpp>

namespace hvd {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

std::vector<HostSlots> Hosts(const std::string& list) { return *ParseHostList(list, "-H"); }

// "rank host.local/local_size cross/cross_size" of every rank.
std::string Show(const Topology& topology) {
  std::string text;
  for (int rank = 0; rank < topology.size(); ++rank) {
    const RankPlace& place = topology.place(rank);
    text += (rank > 0 ? " | " : "") + std::to_string(place.rank) + " " +
            topology.hosts()[place.host].name + "." + std::to_string(place.local_rank) + "/" +
            std::to_string(place.local_size) + " " + std::to_string(place.cross_rank) + "/" +
            std::to_string(place.cross_size);
  }
  return text;
}

TEST_CASE("ranks fill the hosts in order") {
  const auto topology = Topology::Place(Hosts("a:2,b:2"), 4);
  REQUIRE(topology.ok());
  CHECK(Show(*topology) == "0 a.0/2 0/2 | 1 a.1/2 0/2 | 2 b.0/2 1/2 | 3 b.1/2 1/2");
  CHECK(topology->rank_at(0, 1) == 1);
  CHECK(topology->rank_at(1, 0) == 2);
  CHECK(topology->is_host_by_host());
  CHECK(topology->is_homogeneous());
}

TEST_CASE("cross ranks count only the hosts that own the local rank") {
  const auto topology = Topology::Place(Hosts("a:2,b:1,c:2"), 5);
  REQUIRE(topology.ok());
  CHECK(Show(*topology) == "0 a.0/2 0/3 | 1 a.1/2 0/2 | 2 b.0/1 1/3 | 3 c.0/2 2/3 | 4 c.1/2 1/2");
  CHECK_FALSE(topology->is_homogeneous());
}

TEST_CASE("ranks in turn over the hosts, as a launcher may number them") {
  const std::vector<std::string> names = {"a", "b", "c"};
  const Topology topology = Topology::Numbered(names, {1, 0, 1, 1, 2, 0});
  CHECK(Show(topology) ==
        "0 b.0/3 0/3 | 1 a.0/2 1/3 | 2 b.1/3 0/2 | 3 b.2/3 0/1 | 4 c.0/1 2/3 | 5 a.1/2 1/2");
  CHECK(topology.rank_at(0, 2) == 3);
  CHECK(topology.rank_at(1, 1) == 5);
  CHECK_FALSE(topology.is_host_by_host());
  CHECK(Topology::CheckNumbers(topology.hosts()).ok());
}

TEST_CASE("numbers that say what holds without them are dropped") {
  const std::vector<std::string> names = {"a", "b"};
  CHECK(Topology::Numbered(names, {0, 0, 1}).hosts() == std::vector<HostShape>{{"a", 2}, {"b", 1}});
  CHECK(Topology::Numbered(names, {0, 0, 1}).is_host_by_host());
}

TEST_CASE("numbers of ranks are each rank once, ascending, and hosts go by their first") {
  const std::vector<std::vector<HostShape>> wrong = {
      {{"a", 2, {0, 2}}, {"b", 1}},         // b has none
      {{"a", 2, {0, 2}}, {"b", 1, {2}}},    // twice
      {{"a", 2, {2, 0}}, {"b", 1, {1}}},    // not ascending
      {{"a", 1, {1}}, {"b", 2, {0, 2}}},    // b is first
      {{"a", 2, {0, 3}}, {"b", 1, {1}}},    // no such rank
      {{"a", 2, {-1, 0}}, {"b", 1, {1}}},   // nor this
      {{"a", 2, {0, 1, 2}}, {"b", 1, {3}}}  // too many
  };
  for (const std::vector<HostShape>& hosts : wrong) {
    CAPTURE(hosts[0].numbers);
    CHECK(Topology::CheckNumbers(hosts).code() == absl::StatusCode::kInvalidArgument);
  }
  CHECK(Topology::CheckNumbers({}).ok());
}

TEST_CASE("np is exact: slots may stay free and hosts may stay out") {
  const auto two = Topology::Place(Hosts("localhost:4"), 2);
  REQUIRE(two.ok());
  CHECK(Show(*two) == "0 localhost.0/2 0/1 | 1 localhost.1/2 0/1");
  const auto three = Topology::Place(Hosts("a:2,b:2,c:2"), 3);
  REQUIRE(three.ok());
  CHECK(three->hosts() == std::vector<HostShape>{{"a", 2}, {"b", 1}});
}

TEST_CASE("too many ranks are refused with the free slots of each host") {
  const auto topology = Topology::Place(Hosts("host1:4,h2:2"), 9);
  REQUIRE_FALSE(topology.ok());
  CHECK(topology.status().code() == absl::StatusCode::kFailedPrecondition);
  CHECK(topology.status().message() ==
        "-np 9 needs 9 slots, but 2 hosts have 6\n"
        "  host   free slots  stated at\n"
        "  host1           4  -H:1:1\n"
        "  h2              2  -H:1:9\n"
        "  ask for -np 6 or fewer, or give the hosts more slots (host:slots)");
  CHECK_THAT(std::string(Topology::Place(Hosts("h[1-100]"), 200).status().message()),
             Contains("and 60 more hosts"));
}

TEST_CASE("np is bounded") {
  const std::vector<HostSlots> hosts = Hosts("h[1-3]:65536");
  for (const int np : {0, -1, 65537}) {
    const auto topology = Topology::Place(hosts, np);
    CHECK(topology.status().code() == absl::StatusCode::kInvalidArgument);
    CHECK_THAT(std::string(topology.status().message()), StartsWith("-np must be from 1 to 65536"));
  }
  CHECK(Topology::Place(hosts, 65536)->size() == 65536);
}

TEST_CASE("an empty topology has no ranks") {
  CHECK(Topology().size() == 0);
  CHECK(Topology().is_homogeneous());
}

}  // namespace
}  // namespace hvd
