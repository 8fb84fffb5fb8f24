// SPDX-License-Identifier: Apache-2.0
#include "proto/adoption.h"

#include <catch2/catch.hpp>

namespace hvd {
namespace {

Adoption TwoHosts() {
  Adoption adoption;
  adoption.by = "mpirun";
  adoption.key = "feed";
  adoption.hosts = {{"a", 2, 0, "", {}}, {"b", 1, 4711, "cafe", {"10.0.0.2", "fd00::2"}}};
  return adoption;
}

TEST_CASE("what is told of adopted ranks is read as it was meant") {
  const auto read = ParseAdoption(FormatAdoption(TwoHosts()));
  REQUIRE(read.has_value());
  CHECK(*read == TwoHosts());
}

TEST_CASE("ranks in turn over the hosts are told in a few words") {
  Adoption adoption = TwoHosts();
  adoption.hosts[0].numbers = {0, 2};
  adoption.hosts[1].numbers = {1};
  CHECK(*ParseAdoption(FormatAdoption(adoption)) == adoption);
  adoption.hosts = {{"a", 0, 0, "", {}}};
  for (int rank = 0; rank < 65536; rank += rank % 64 == 62 ? 3 : 2) {
    adoption.hosts[0].numbers.push_back(rank);
  }
  adoption.hosts[0].ranks = static_cast<int>(adoption.hosts[0].numbers.size());
  CHECK(*ParseAdoption(FormatAdoption(adoption)) == adoption);
  for (const char* numbers : {"1", "0/0/2", "0/1/0", "-1/1/1", "0/1/2,", "0/1/65537", "0/1/1/1"}) {
    INFO(numbers);
    CHECK_FALSE(
        ParseAdoption("hvd-adoption-1 mpirun feed\na 1 0 - - " + std::string(numbers)).has_value());
  }
}

TEST_CASE("what is cut short or made by others is no adoption") {
  const std::string text = FormatAdoption(TwoHosts());
  for (size_t bytes = 0; bytes < text.size(); ++bytes) {
    const auto read = ParseAdoption(text.substr(0, bytes));
    if (read.has_value()) CHECK_FALSE(*read == TwoHosts());
  }
  for (const char* wrong :
       {"", "hello", "hvd-adoption-1 mpirun feed", "hvd-adoption-2 mpirun feed\na 1 0 - - -",
        "hvd-adoption-1 mpirun feed\na 0 0 - - -", "hvd-adoption-1 mpirun feed\na 1 65536 - - -",
        "hvd-adoption-1 mpirun feed\na 1 0 - -", "hvd-adoption-1 mpirun feed\na 1 0 - , -",
        "hvd-adoption-1 mpirun feed\na 1x 0 - - -", "hvd-adoption-1  feed\na 1 0 - - -"}) {
    INFO(wrong);
    CHECK_FALSE(ParseAdoption(wrong).has_value());
  }
}

TEST_CASE("claims of other users, jobs and ranks have other names") {
  CHECK(ClaimName("feed", 7, 1) == "hvd-adopt-7-feed-1");
  CHECK(ClaimName("feed", 7, 1) != ClaimName("feed", 71, 1));
  CHECK(ClaimName("feed", 7, 1) != ClaimName("feed", 7, 11));
}

}  // namespace
}  // namespace hvd
