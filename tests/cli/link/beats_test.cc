// SPDX-License-Identifier: Apache-2.0
#include "cli/link/beats.h"

#include <catch2/catch.hpp>

namespace hvd::cli {
namespace {

TEST_CASE("the lease runs from the send time of the newest echoed beat") {
  BeatLease lease(100, 3);
  CHECK(lease.deadline() == Approx(103.5));
  CHECK(lease.Send(101) == 1);
  CHECK(lease.Send(102) == 2);
  CHECK(lease.deadline() == Approx(103.5));
  lease.Hear(1, 1);
  CHECK(lease.deadline() == Approx(104.5));
  lease.Hear(2, 2);
  CHECK(lease.deadline() == Approx(105.5));
}

TEST_CASE("old bytes that come late do not extend it") {
  BeatLease lease(0, 3);
  for (int i = 1; i <= 20; ++i) lease.Send(i);
  lease.Hear(1, 2);
  lease.Hear(9, 2);
  CHECK(lease.deadline() == Approx(5.5));
  lease.Hear(8, 1);
  CHECK(lease.deadline() == Approx(5.5));
  CHECK(lease.heard() == 9);
}

TEST_CASE("an echo of what was never sent proves no more than what was") {
  BeatLease lease(0, 3);
  lease.Send(1);
  lease.Hear(1, 1000);
  CHECK(lease.deadline() == Approx(4.5));
  lease.Send(2);
  CHECK(lease.deadline() == Approx(4.5));
}

TEST_CASE("a short lease is beaten for more often than a long one") {
  CHECK(BeatPeriodS(0.5) == Approx(0.25));
  CHECK(BeatPeriodS(3) == Approx(0.25));
  CHECK(BeatPeriodS(8) == Approx(0.4));
  CHECK(BeatPeriodS(10) == Approx(0.5));
  CHECK(BeatPeriodS(3600) == Approx(0.5));
}

TEST_CASE("the newest beat is the one whose echo is awaited") {
  BeatLease lease(0, 3);
  CHECK(lease.newest() == 0);
  lease.Send(1);
  const uint64_t second = lease.Send(2);
  CHECK(lease.newest() == second);
}

}  // namespace
}  // namespace hvd::cli
