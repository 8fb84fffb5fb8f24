// SPDX-License-Identifier: Apache-2.0
#include "cli/membership/faults/share_budget.h"

#include <catch2/catch.hpp>

namespace hvd::cli {
namespace {

TEST_CASE("three deaths without progress use up a share, and no other") {
  ShareBudget budget;
  CHECK(!budget.Died("a", 0, false, 1));
  CHECK(!budget.Died("a", 0, false, 2));
  CHECK(!budget.Died("a", 1, false, 2));
  CHECK(!budget.AnyStaysOut());
  CHECK(budget.Died("a", 0, true, 3));
  CHECK(budget.IsOut("a", 0));
  CHECK(budget.StaysOut("a", 0));
  CHECK(!budget.IsOut("a", 1));
  CHECK(!budget.IsOut("b", 0));
  SECTION("its host begins anew with it once the job has got on") {
    budget.Renew("a", false);
    CHECK(budget.IsOut("a", 0));
    budget.GetsOn();
    CHECK(budget.IsOut("a", 0));
    CHECK(!budget.StaysOut("a", 0));
    CHECK(!budget.AnyStaysOut());
    budget.Renew("a", false);
    CHECK(!budget.IsOut("a", 0));
  }
  SECTION("or where others go on without it") {
    budget.Renew("a", true);
    CHECK(!budget.IsOut("a", 0));
  }
}

TEST_CASE("progress in between clears what has been counted") {
  ShareBudget budget;
  for (int time = 0; time < 10; ++time) {
    CHECK(!budget.Died("a", 0, false, time));
    budget.GetsOn();
  }
  CHECK(!budget.IsOut("a", 0));
}

TEST_CASE("a share waits for longer and longer until the next start") {
  ShareBudget budget;
  const bool outside = GENERATE(false, true);
  const auto wait = [&](double now) {
    budget.Died("a", 0, outside, now);
    budget.GetsOn();
    return budget.Until("a", 0) - now;
  };
  CHECK(budget.Until("a", 0) == 0);
  CHECK(wait(1) == 0);
  // Nobody waits for an outsider who kills the ranks of a job that gets on.
  CHECK(wait(1) == (outside ? 0 : 0.5));
  CHECK(wait(2) == (outside ? 0 : 1));
  for (int time = 0; time < 100; ++time) wait(3);
  CHECK(wait(3) == (outside ? 0 : ShareBudget::kMostWaitS));
  CHECK(wait(1000) == 0);  // it was well for long
}

}  // namespace
}  // namespace hvd::cli
