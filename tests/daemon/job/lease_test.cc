// SPDX-License-Identifier: Apache-2.0
#include "daemon/job/lease.h"

#include <catch2/catch.hpp>

namespace hvd::daemon {
namespace {

using std::chrono::milliseconds;

TEST_CASE("the lease runs from the send time of the newest echoed beat") {
  const TimePoint start{};
  BeatBook book;
  Lease lease(start, std::chrono::duration<double>(2));
  CHECK(lease.until() == start + milliseconds(2000));
  book.Send(start + milliseconds(250));
  book.Send(start + milliseconds(500));
  book.Send(start + milliseconds(750));
  // Heard much later: what counts is when beat 2 went out.
  const auto sent = book.Hear(1, 2);
  REQUIRE(sent.has_value());
  CHECK(*sent == start + milliseconds(500));
  lease.Renew(*sent);
  CHECK(lease.until() == start + milliseconds(2500));
}

TEST_CASE("old, repeated and invented echoes prove nothing") {
  BeatBook book;
  book.Send(TimePoint{});
  CHECK(book.Hear(1, 1).has_value());
  CHECK(!book.Hear(2, 1).has_value());
  CHECK(!book.Hear(3, 0).has_value());
  CHECK(!book.Hear(4, 99).has_value());
  CHECK(book.heard() == 4);
}

TEST_CASE("a renewal never shortens the lease") {
  const TimePoint start = TimePoint{} + milliseconds(1000);
  Lease lease(start, std::chrono::duration<double>(1));
  lease.Renew(start - milliseconds(500));
  CHECK(lease.until() == start + milliseconds(1000));
}

TEST_CASE("what beats renew reaches the shim's word, with slack") {
  const TimePoint start{};
  LeaseWord word;
  RenewedLease lease(&word);
  CHECK(lease.until() == TimePoint::max());
  lease.Renew(start);  // no lease yet
  CHECK(word.Get() == TimePoint::max());
  lease.Begin(Lease(start, std::chrono::duration<double>(1)));
  CHECK(word.Get() == start + milliseconds(1250));
  lease.Renew(start + milliseconds(500));
  CHECK(lease.until() == start + milliseconds(1500));
  CHECK(word.Get() == start + milliseconds(1750));
}

TEST_CASE("a fixed end for the shim stays, whatever is renewed") {
  const TimePoint start{};
  LeaseWord word;
  RenewedLease lease(&word);
  lease.Begin(Lease(start, std::chrono::duration<double>(1)));
  lease.FixForShim(start + milliseconds(7000));
  lease.Renew(start + milliseconds(500));
  CHECK(lease.until() == start + milliseconds(1500));
  CHECK(word.Get() == start + milliseconds(7000));
}

}  // namespace
}  // namespace hvd::daemon
