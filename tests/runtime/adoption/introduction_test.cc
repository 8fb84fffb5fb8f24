// SPDX-License-Identifier: Apache-2.0
#include "runtime/adoption/introduction.h"

#include <catch2/catch.hpp>

namespace hvd::rt {
namespace {

using Catch::Matchers::Contains;

std::string Say(const std::string& host, int local_rank, int local_size,
                const std::string& identity = "") {
  Introduction said;
  said.host = host;
  said.identity = identity;
  said.local_rank = local_rank;
  said.local_size = local_size;
  if (host == "a" && local_rank == 0) said.key = "feed";
  if (host != "a" && local_rank == 0) said.daemon = {"", 0, 4711, "cafe", {"10.0.0.2", "fd00::2"}};
  return FormatIntroduction(said);
}

std::string WhyNot(const std::vector<std::string>& texts) {
  const auto gathered = GatherAdoption("mpirun", texts);
  REQUIRE_FALSE(gathered.ok());
  return std::string(gathered.status().message());
}

TEST_CASE("introductions come to the hosts of a job, in the order of ranks") {
  const auto adoption = GatherAdoption("mpirun", {Say("a", 0, 2), Say("a", 1, 2), Say("b", 0, 1)});
  REQUIRE(adoption.ok());
  CHECK(adoption->key == "feed");
  CHECK(adoption->hosts ==
        std::vector<AdoptedHost>{{"a", 2, 0, "", {}},
                                 {"b", 1, 4711, "cafe", {"10.0.0.2", "fd00::2"}}});
}

TEST_CASE("within a host the launcher's local ranks may be in any order") {
  const auto adoption =
      GatherAdoption("mpirun", {Say("a", 1, 2), Say("a", 0, 2), Say("b", 1, 2), Say("b", 0, 2)});
  REQUIRE(adoption.ok());
  CHECK(adoption->hosts[0].port == 0);
  CHECK(adoption->hosts[1].port == 4711);
}

TEST_CASE("neighbours on one machine are one host, and are reached once") {
  const auto first = GatherAdoption("torchrun", {Say("a", 0, 2, "x"), Say("a", 1, 2, "x"),
                                                 Say("a", 0, 1, "x"), Say("b", 0, 1, "y")});
  REQUIRE(first.ok());
  CHECK(first->hosts == std::vector<AdoptedHost>{{"a", 3, 0, "", {}},
                                                 {"b", 1, 4711, "cafe", {"10.0.0.2", "fd00::2"}}});
  const auto last =
      GatherAdoption("torchrun", {Say("a", 0, 1, "x"), Say("b", 0, 1, "y"), Say("b", 0, 1, "y")});
  REQUIRE(last.ok());
  CHECK(last->hosts == std::vector<AdoptedHost>{{"a", 1, 0, "", {}},
                                                {"b", 2, 4711, "cafe", {"10.0.0.2", "fd00::2"}}});
}

TEST_CASE("hosts of one name stay two") {
  const auto adoption = GatherAdoption("mpirun", {Say("a", 0, 1), Say("a", 0, 1), Say("a", 0, 1)});
  REQUIRE(adoption.ok());
  REQUIRE(adoption->hosts.size() == 3);
  CHECK(adoption->hosts[1].name == "a+2");
  CHECK(adoption->hosts[2].name == "a+3");
}

TEST_CASE("ranks may go in turn over hosts that can be told from one another") {
  const auto adoption =
      GatherAdoption("mpirun", {Say("a", 0, 2, "x"), Say("b", 0, 3, "y"), Say("b", 1, 3, "y"),
                                Say("a", 1, 2, "x"), Say("b", 2, 3, "y")});
  REQUIRE(adoption.ok());
  REQUIRE(adoption->hosts.size() == 2);
  CHECK(adoption->hosts[0].numbers == std::vector<int>{0, 3});
  CHECK(adoption->hosts[0].port == 0);
  CHECK(adoption->hosts[1].numbers == std::vector<int>{1, 2, 4});
  CHECK(adoption->hosts[1].ranks == 3);
  CHECK(adoption->hosts[1].port == 4711);
}

TEST_CASE("ranks that go in turn over hosts that cannot be told are refused") {
  CHECK_THAT(WhyNot({Say("a", 0, 2), Say("b", 0, 2), Say("a", 1, 2), Say("b", 1, 2)}),
             Contains("in turn over the hosts (rank 1)"));
  CHECK_THAT(WhyNot({Say("a", 0, 2), Say("a", 0, 2)}), Contains("rank 1"));
  CHECK_THAT(WhyNot({Say("a", 0, 2)}), Contains("in turn"));
  CHECK_FALSE(GatherAdoption("mpirun", {}).ok());
}

TEST_CASE("what another version says is told with its rank") {
  CHECK_THAT(WhyNot({Say("a", 0, 2), "hvd2 words"}), Contains("rank 1") && Contains("version"));
}

TEST_CASE("an introduction fits into a launcher's store") {
  Introduction said;
  said.host = std::string(253, 'h');
  said.local_rank = said.local_size = 65535;
  said.daemon.port = 65535;
  said.daemon.secret = said.key = std::string(32, 'f');
  said.identity = std::string(16, 'f');
  said.daemon.addresses.assign(6, "2001:0db8:0000:0000:0000:0000:0000:0001");
  CHECK(FormatIntroduction(said).size() <= 450);
}

}  // namespace
}  // namespace hvd::rt
