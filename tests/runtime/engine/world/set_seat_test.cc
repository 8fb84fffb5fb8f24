// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/world/set_seat.h"

#include <catch2/catch.hpp>

namespace hvd::rt {
namespace {

TEST_CASE("in the set of all a rank's numbers are the job's") {
  const SetSeat seat(Topology({{"a", 2}, {"b", 2}}), 3);
  CHECK(seat.members().empty());
  CHECK(seat.GlobalRank(2) == 2);
  CHECK(seat.place().host == 1);
  CHECK(seat.LocalRankInJob(1) == 1);
  CHECK(&seat.in_job() == &seat);
}

TEST_CASE("in another set a rank knows the others' numbers in the job, and where it is there") {
  const SetSeat job(Topology({{"a", 1}, {"b", 4}}), 4);
  // Ranks 2 and 4 of the job, both on its second host.
  const SetSeat seat(Topology({{"b", 2}}), 1, &job, {1, {2, 4}, 7});
  CHECK(seat.rank() == 1);
  CHECK(seat.set().id == 7);
  CHECK(seat.GlobalRank(0) == 2);
  CHECK(seat.GlobalRank(1) == 4);
  CHECK(seat.LocalRankInJob(0) == 1);
  CHECK(seat.LocalRankInJob(1) == 3);
  CHECK(seat.HostInJob() == 1);
  CHECK(seat.place().host == 0);
}

}  // namespace
}  // namespace hvd::rt
