// SPDX-License-Identifier: Apache-2.0
#include "cli/membership/wants.h"

#include <catch2/catch.hpp>
#include <cmath>

namespace hvd::cli {

TEST_CASE("the earliest time that is to come wakes", "[membership]") {
  Wants wants;
  wants.WakeAt(5, 5);  // it has come
  CHECK(std::isinf(wants.deadline()));
  wants.WakeAt(9, 5);
  wants.WakeAt(7, 5);
  wants.WakeAt(8, 5);
  CHECK(wants.deadline() == 7);
  wants.Begin();
  CHECK(std::isinf(wants.deadline()));
}

TEST_CASE("an end names the last failures, but not behind a bug that it has named",
          "[membership]") {
  Wants wants;
  for (const char* failure : {"f1", "f2", "f3", "f4", "f5", "f6"}) wants.NoteFailure(failure);
  CHECK_FALSE(wants.ended());
  wants.End(MembershipEnd::kTooFew, 4, {"too few", "\nmore"});
  wants.End(MembershipEnd::kProgramBug, 4, {"a bug"});
  CHECK(wants.ended());
  const std::vector<MembershipAction> actions = wants.Take();
  REQUIRE(actions.size() == 2);
  CHECK(actions[0].member == 4);
  CHECK(actions[0].text ==
        "too few\n  the last failures:\n    f2\n    f3\n    f4\n    f5\n    f6\nmore");
  CHECK(actions[1].text == "a bug");
  CHECK(wants.Take().empty());
}

}  // namespace hvd::cli
