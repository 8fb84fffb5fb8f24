// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/identity.h"

#include <catch2/catch.hpp>
#include <map>

namespace hvd {
namespace {

absl::StatusOr<std::optional<LinkName>> Find(const std::map<std::string, std::string>& variables) {
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

}  // namespace
}  // namespace hvd
