// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/identity.h"

#include <catch2/catch.hpp>
#include <map>

namespace hvd::rt {
namespace {

using Variables = std::map<std::string, std::string>;
using Catch::Matchers::Contains;

absl::StatusOr<std::optional<LinkName>> Find(const Variables& variables) {
  return FindLink([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST_CASE("without a launcher there is no link") {
  const auto link = Find({});
  REQUIRE(link.ok());
  CHECK_FALSE(link->has_value());
}

TEST_CASE("a launcher's link is found") {
  const auto link = Find({{"HVD_RANK", "1"}, {"HVD_LINK", "5:77:" + std::string(32, 'a') + ":/p"}});
  REQUIRE(link.ok());
  REQUIRE(link->has_value());
  CHECK((*link)->fd == 5);
}

TEST_CASE("a rank without a link is an error, never a job of one") {
  const auto link = Find({{"HVD_RANK", "1"}});
  REQUIRE_FALSE(link.ok());
  CHECK(link.status().message().find("HVD_LINK is not set") != std::string::npos);
}

TEST_CASE("a garbled link is an error") { CHECK_FALSE(Find({{"HVD_LINK", "hello"}}).ok()); }

TEST_CASE("one of several is never a job of one") {
  const Variables of_mpirun = {{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "0"}};
  const auto link = Find(of_mpirun);
  REQUIRE_FALSE(link.ok());
  const std::string text(link.status().message());
  CHECK_THAT(text,
             Contains("mpirun has started this process as one of 4 (OMPI_COMM_WORLD_SIZE=4)"));
  CHECK_THAT(text, Contains("hvdrun -np 4 PROGRAM"));
  CHECK_THAT(text, Contains("HVD_STANDALONE=1"));
  const auto uncounted = Find({{"PMIX_NAMESPACE", "a\nb"}, {"PMIX_RANK", "0"}});
  REQUIRE_FALSE(uncounted.ok());
  CHECK_THAT(std::string(uncounted.status().message()),
             Contains("as one of several (PMIX_NAMESPACE=a\\nb)"));
}

TEST_CASE("HVD_STANDALONE says that one is meant") {
  Variables variables = {
      {"WORLD_SIZE", "4"}, {"RANK", "0"}, {"HVD_RANK", "1"}, {"HVD_STANDALONE", "1"}};
  const auto alone = Find(variables);
  REQUIRE(alone.ok());
  CHECK_FALSE(alone->has_value());
  for (const char* no : {"", "0"}) {
    variables["HVD_STANDALONE"] = no;
    CHECK_FALSE(Find(variables).ok());
  }
  const auto wrong = Find({{"HVD_STANDALONE", "yes"}});
  REQUIRE_FALSE(wrong.ok());
  CHECK_THAT(std::string(wrong.status().message()), Contains("HVD_STANDALONE is 'yes'"));
}

TEST_CASE("a link counts more than whatever else is there") {
  const auto link = Find({{"HVD_RANK", "1"},
                          {"HVD_LINK", "5:77:" + std::string(32, 'a') + ":/p"},
                          {"HVD_STANDALONE", "1"},
                          {"OMPI_COMM_WORLD_SIZE", "4"},
                          {"OMPI_COMM_WORLD_RANK", "0"}});
  REQUIRE(link.ok());
  CHECK(link->has_value());
}

}  // namespace
}  // namespace hvd::rt
