// SPDX-License-Identifier: Apache-2.0
#include "base/nearest.h"

#include <catch2/catch.hpp>

namespace hvd {
namespace {

TEST_CASE("edit distance counts insertions, deletions, replacements and swaps") {
  CHECK(EditDistance("", "") == 0);
  CHECK(EditDistance("", "abc") == 3);
  CHECK(EditDistance("slots", "slots") == 0);
  CHECK(EditDistance("slot", "slots") == 1);
  CHECK(EditDistance("solts", "slots") == 1);
  CHECK(EditDistance("slits", "slots") == 1);
  CHECK(EditDistance("SLOTS", "slots") == 0);
  CHECK(EditDistance("kitten", "sitting") == 3);
}

TEST_CASE("only a near word is suggested") {
  const absl::string_view known[] = {"slots", "port", "max_slots"};
  CHECK(Nearest("slot", known) == "slots");
  CHECK(Nearest("prot", known) == "port");
  CHECK(Nearest("max-slot", known) == "max_slots");
  CHECK(Nearest("banana", known).empty());
  CHECK(Nearest("x", known).empty());
  CHECK(Nearest("", known).empty());
  CHECK(Nearest(std::string(5000, 's'), known).empty());
  CHECK(Nearest("slots", {}).empty());
}

}  // namespace
}  // namespace hvd
