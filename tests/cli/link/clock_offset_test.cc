// SPDX-License-Identifier: Apache-2.0
#include "cli/link/clock_offset.h"

#include <catch2/catch.hpp>

namespace hvd::cli {
namespace {

// A round trip to a host whose clock is `ahead` of ours; each way takes so long.
BeatRoundTrip Trip(int64_t sent, int64_t ahead, int64_t there_ns, int64_t back_ns) {
  BeatRoundTrip trip;
  trip.sent = sent;
  trip.heard_there = sent + there_ns + ahead;
  trip.answered_there = trip.heard_there + 200'000'000;  // its next beat
  trip.heard = trip.answered_there - ahead + back_ns;
  return trip;
}

TEST_CASE("there is no offset before the first round trip") {
  CHECK_FALSE(ClockOffset().offset_ns().has_value());
}

TEST_CASE("the quickest of the last round trips counts, whatever came before") {
  ClockOffset clock;
  const int64_t ahead = 5'000'000'000'000;
  clock.Add(Trip(1'000, ahead, 9'000'000, 50'000));  // the way there was slow
  CHECK(*clock.offset_ns() + ahead == -4'475'000);
  clock.Add(Trip(2'000, ahead, 60'000, 50'000));
  clock.Add(Trip(3'000, ahead, 50'000, 30'000'000));
  CHECK(*clock.offset_ns() + ahead == -5'000);
}

TEST_CASE("a drifting clock is followed: old round trips are forgotten") {
  ClockOffset clock;
  clock.Add(Trip(0, 0, 1, 1));
  for (size_t i = 0; i < ClockOffset::kKept; ++i) clock.Add(Trip(1000, 700, 50, 50));
  CHECK(*clock.offset_ns() == -700);
}

TEST_CASE("what cannot be a round trip is ignored") {
  ClockOffset clock;
  clock.Add({100, 0, 1'000'000, 200});
  CHECK_FALSE(clock.offset_ns().has_value());
}

}  // namespace
}  // namespace hvd::cli
