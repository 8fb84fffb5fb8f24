// SPDX-License-Identifier: Apache-2.0
#include "tests/support/cuda/stream_order.h"

#include <catch2/catch.hpp>

namespace hvd::rt {
namespace {

class Device {
 public:
  int Stream() { return order.AddStream(); }
  // True: it is ordered after all that it must come after.
  bool Writes(int stream, uint64_t address, uint64_t bytes) {
    return !log.Note(order.Enqueue(stream), {address, bytes, true}).has_value();
  }
  bool Reads(int stream, uint64_t address, uint64_t bytes) {
    return !log.Note(order.Enqueue(stream), {address, bytes, false}).has_value();
  }

  StreamOrder order;
  AccessLog log{&order};
};

TEST_CASE("a stream is in order with itself") {
  Device device;
  const int s = device.Stream();
  CHECK(device.Writes(s, 100, 10));
  CHECK(device.Reads(s, 100, 10));
  CHECK(device.Writes(s, 105, 10));
}

TEST_CASE("two streams are not, without an event") {
  Device device;
  const int a = device.Stream(), b = device.Stream();
  CHECK(device.Writes(a, 100, 10));
  SECTION("a read of what is written") { CHECK_FALSE(device.Reads(b, 109, 1)); }
  SECTION("a second write") { CHECK_FALSE(device.Writes(b, 90, 11)); }
  SECTION("beside it there is nothing to order") {
    CHECK(device.Reads(b, 110, 10));
    CHECK(device.Writes(b, 90, 10));
  }
  SECTION("an event that was recorded too early") {
    const OrderClock early = device.order.Record(a);
    CHECK(device.Writes(a, 100, 10));
    device.order.Await(b, early);
    CHECK_FALSE(device.Reads(b, 100, 10));
  }
  SECTION("an event recorded behind the write") {
    device.order.Await(b, device.order.Record(a));
    CHECK(device.Reads(b, 100, 10));
    SECTION("orders nothing the other way") { CHECK_FALSE(device.Writes(a, 100, 10)); }
    SECTION("and one back orders that, too") {
      device.order.Await(a, device.order.Record(b));
      CHECK(device.Writes(a, 100, 10));
    }
  }
}

TEST_CASE("events order through a third stream, and through the host") {
  Device device;
  const int a = device.Stream(), b = device.Stream(), c = device.Stream();
  CHECK(device.Writes(a, 0, 8));
  SECTION("a third stream") {
    device.order.Await(b, device.order.Record(a));
    device.order.Enqueue(b);
    device.order.Await(c, device.order.Record(b));
    CHECK(device.Reads(c, 0, 8));
  }
  SECTION("the host that has waited") {
    device.order.HostSaw(device.order.Record(a));
    CHECK(device.Reads(c, 0, 8));
  }
}

TEST_CASE("many may read at once; who writes must come after all of them") {
  Device device;
  const int a = device.Stream(), b = device.Stream(), c = device.Stream();
  CHECK(device.Reads(a, 0, 8));
  CHECK(device.Reads(b, 4, 8));
  device.order.Await(c, device.order.Record(a));
  CHECK(device.Writes(c, 0, 4));
  CHECK_FALSE(device.Writes(c, 4, 1));
}

TEST_CASE("memory may be given back when the host has waited for who touches it") {
  Device device;
  const int a = device.Stream();
  CHECK(device.Writes(a, 0, 8));
  CHECK_FALSE(device.log.Free(16, 8).has_value());
  SECTION("too early") {
    const auto still = device.log.Free(4, 1);
    REQUIRE(still.has_value());
    CHECK(still->stream == a);
    CHECK(still->number == 1);
  }
  SECTION("in time") {
    device.order.HostSaw(device.order.Record(a));
    CHECK_FALSE(device.log.Free(0, 8).has_value());
  }
}

}  // namespace
}  // namespace hvd::rt
