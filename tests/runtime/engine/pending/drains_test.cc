// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/pending/drains.h"

#include <catch2/catch.hpp>

namespace hvd::rt {
namespace {

TEST_CASE("a drain is over when all that was submitted before it has finished, in any order") {
  Drains drains;
  Drain drain;
  drain.Begin(3, 2);
  drains.Add(&drain);
  CHECK(drains.any());
  drains.Finished(3);
  CHECK_FALSE(drain.over());
  drains.Finished(4);  // came later
  CHECK_FALSE(drain.over());
  drains.Finished(1);
  CHECK(drain.over());
}

TEST_CASE("each drain counts for itself, and one that is gone counts no more") {
  Drains drains;
  Drain early, late;
  early.Begin(1, 1);
  late.Begin(2, 2);
  drains.Add(&early);
  drains.Add(&late);
  drains.Finished(1);
  CHECK(early.over());
  CHECK_FALSE(late.over());
  drains.Remove(&late);
  drains.Finished(2);
  CHECK_FALSE(late.over());
  drains.Remove(&early);
  CHECK_FALSE(drains.any());
}

TEST_CASE("with the epoch every drain ends") {
  Drains drains;
  Drain drain;
  drain.Begin(100, 100);
  drains.Add(&drain);
  drains.EndAll();
  CHECK(drain.over());
}

}  // namespace
}  // namespace hvd::rt
