// SPDX-License-Identifier: Apache-2.0
#include "daemon/job/stop_plan.h"

#include <catch2/catch.hpp>

namespace hvd::daemon {
namespace {

using Do = StopPlan::Do;
constexpr TimePoint kStart{};
constexpr auto kSecond = std::chrono::seconds(1);

TEST_CASE("a stop asks, waits for the grace, kills, and counts what is left") {
  StopPlan plan;
  CHECK(plan.Begin(kStart, false, 5 * kSecond) == Do::kTermAll);
  CHECK(plan.Due(kStart + 4 * kSecond) == Do::kNothing);
  CHECK(plan.Due(kStart + 5 * kSecond) == Do::kKillAll);
  CHECK(plan.deadline() < kStart + 6 * kSecond);
  CHECK(plan.Due(kStart + 6 * kSecond) == Do::kCount);
  CHECK_FALSE(plan.done());
  plan.Counted();
  CHECK(plan.done());
  CHECK(plan.Due(kStart + 60 * kSecond) == Do::kNothing);
}

TEST_CASE("a shim that does not count is ended, once") {
  StopPlan plan;
  plan.Begin(kStart, true, 5 * kSecond);
  CHECK(plan.Due(kStart + kSecond) == Do::kCount);
  CHECK(plan.Begin(kStart + kSecond, true, 5 * kSecond) == Do::kNothing);
  REQUIRE(plan.deadline().has_value());
  CHECK(*plan.deadline() < kStart + 2 * kSecond);
  CHECK(plan.Due(kStart + kSecond) == Do::kNothing);
  CHECK(plan.Due(kStart + 2 * kSecond) == Do::kEndShim);
  CHECK(plan.done());
  CHECK(plan.Due(kStart + 60 * kSecond) == Do::kNothing);
}

TEST_CASE("what is empty while it is counted is done") {
  StopPlan plan;
  plan.Begin(kStart, true, 5 * kSecond);
  plan.Due(kStart + kSecond);
  CHECK(plan.Emptied() == Do::kDone);
  CHECK_FALSE(plan.deadline().has_value());
}

TEST_CASE("a stop ends as soon as nothing is left") {
  StopPlan plan;
  CHECK(plan.Emptied() == Do::kNothing);
  plan.Begin(kStart, false, 5 * kSecond);
  CHECK(plan.Emptied() == Do::kDone);
  CHECK(plan.Emptied() == Do::kNothing);
  CHECK(plan.Begin(kStart, true, 5 * kSecond) == Do::kNothing);
  CHECK(!plan.deadline().has_value());
}

TEST_CASE("a second stop with kill cuts the grace short, once") {
  StopPlan plan;
  plan.Begin(kStart, false, 60 * kSecond);
  CHECK(plan.Begin(kStart + kSecond, false, 60 * kSecond) == Do::kNothing);
  CHECK(plan.Begin(kStart + kSecond, true, 60 * kSecond) == Do::kKillAll);
  CHECK(plan.Begin(kStart + kSecond, true, 60 * kSecond) == Do::kNothing);
  CHECK(plan.Emptied() == Do::kDone);
}

TEST_CASE("a second stop with another grace never lengthens it") {
  StopPlan plan;
  plan.Begin(kStart, false, 60 * kSecond);
  CHECK(plan.Begin(kStart + kSecond, false, 100 * kSecond) == Do::kNothing);
  CHECK(plan.deadline() == kStart + 60 * kSecond);
  CHECK(plan.Begin(kStart + kSecond, false, 5 * kSecond) == Do::kNothing);
  CHECK(plan.deadline() == kStart + 6 * kSecond);
  CHECK(plan.Due(kStart + 6 * kSecond) == Do::kKillAll);
}

}  // namespace
}  // namespace hvd::daemon
