// SPDX-License-Identifier: Apache-2.0
#include "cli/console/repeated_term.h"

#include <catch2/catch.hpp>

namespace hvd::cli {
namespace {

TEST_CASE("a manager's TERMs that come at once are one, and a later one is another") {
  RepeatedTerm term(true);
  CHECK_FALSE(term.Is(5));
  CHECK(term.Is(5));
  CHECK(term.Is(5.9));
  CHECK_FALSE(term.Is(6.1));  // a second after the one that counted, however many came between
  CHECK(term.Is(6.2));
}

TEST_CASE("a person's TERMs all count") {
  RepeatedTerm term(false);
  for (int i = 0; i < 3; ++i) CHECK_FALSE(term.Is(5));
}

}  // namespace
}  // namespace hvd::cli
