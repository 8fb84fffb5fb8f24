// SPDX-License-Identifier: Apache-2.0
#include "daemon/job/stop_plan.h"

#include <catch2/catch.hpp>

namespace hvd {
namespace {

using Do = StopPlan::Do;
constexpr TimePoint kStart{};
constexpr auto kSecond = std::chrono::seconds(1);

TEST_CASE("a stop asks, waits for the grace, kills, and counts what is left") {
  StopPlan plan(std::chrono::seconds(5));
  CHECK(plan.Begin(kStart, false) == Do::kTermAll);
  CHECK(plan.Due(kStart + 4 * kSecond) == Do::kNothing);
  CHECK(plan.Due(kStart + 5 * kSecond) == Do::kKillAll);
  CHECK(plan.deadline() < kStart + 6 * kSecond);
  CHECK(plan.Due(kStart + 6 * kSecond) == Do::kCount);
  CHECK(plan.done());
}

TEST_CASE("a stop ends as soon as nothing is left") {
  StopPlan plan(std::chrono::seconds(5));
  CHECK(plan.Emptied() == Do::kNothing);
  plan.Begin(kStart, false);
  CHECK(plan.Emptied() == Do::kDone);
  CHECK(plan.Emptied() == Do::kNothing);
  CHECK(plan.Begin(kStart, true) == Do::kNothing);
  CHECK(!plan.deadline().has_value());
}

TEST_CASE("a second stop with kill cuts the grace short, once") {
  StopPlan plan(std::chrono::seconds(60));
  plan.Begin(kStart, false);
  CHECK(plan.Begin(kStart + kSecond, false) == Do::kNothing);
  CHECK(plan.Begin(kStart + kSecond, true) == Do::kKillAll);
  CHECK(plan.Begin(kStart + kSecond, true) == Do::kNothing);
  CHECK(plan.Emptied() == Do::kDone);
}

}  // namespace
}  // namespace hvd
