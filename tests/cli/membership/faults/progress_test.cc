// SPDX-License-Identifier: Apache-2.0
#include "cli/membership/faults/progress.h"

#include <catch2/catch.hpp>

namespace hvd::cli {
namespace {

TEST_CASE("a job gets on with a step that its program has not reached before") {
  Progress progress;
  CHECK(!progress.Reached(0, 0));  // a sync's
  CHECK(progress.Reached(1, 0));
  CHECK(!progress.Reached(1, 0));  // another host says the same
  CHECK(progress.Reached(5, 0));
  CHECK(!progress.Reached(3, 0));  // it has gone back
  CHECK(!progress.Reached(5, 0));
  CHECK(progress.Reached(6, 0));
}

TEST_CASE("a place that is committed once more is not a new one, whatever it counts") {
  Progress progress;
  CHECK(progress.Reached(4, 40));
  CHECK(!progress.Reached(5, 40));
  CHECK(!progress.Reached(6, 40));
  CHECK(!progress.Reached(8, 40));
  CHECK(progress.Reached(9, 41));
  CHECK(!progress.Reached(10, 40));
}

TEST_CASE("where places hardly ever change, many commits are progress, too") {
  Progress progress;
  CHECK(progress.Reached(4, 40));
  CHECK(progress.Reached(30, 40));
  CHECK(progress.Reached(40, 40));
}

}  // namespace
}  // namespace hvd::cli
