// SPDX-License-Identifier: Apache-2.0
#include "cli/driver/poll.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <catch2/catch.hpp>

namespace hvd::cli {
namespace {

struct Pipe {
  Pipe() {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    from = Descriptor(ends[0]);
    to = Descriptor(ends[1]);
  }
  void Write() const { REQUIRE(write(to.get(), "x", 1) == 1); }

  Descriptor from, to;
};

}  // namespace

TEST_CASE("the driver's poll tells whose descriptor is ready, and of which host", "[driver]") {
  Pipe hello, errors;
  DriverPoll poll;
  poll.Watch({hello.from.get(), EPOLLIN}, DriverSource::kHello, 3);
  poll.Watch({errors.from.get(), EPOLLIN}, DriverSource::kErrors, 70000);
  CHECK(poll.Wait(0).empty());
  errors.Write();
  const auto ready = poll.Wait(60);
  REQUIRE(ready.size() == 1);
  CHECK(ready[0].source == DriverSource::kErrors);
  CHECK(ready[0].host == 70000);
  CHECK(ready[0].events == EPOLLIN);
}

TEST_CASE("a descriptor that is watched once more is watched for the newer events", "[driver]") {
  Pipe pipe;
  DriverPoll poll;
  poll.Watch({pipe.to.get(), EPOLLIN}, DriverSource::kConsole);
  CHECK(poll.Wait(0).empty());
  poll.Watch({pipe.to.get(), EPOLLIN | EPOLLOUT}, DriverSource::kConsole);
  CHECK(poll.Wait(0).size() == 1);
  poll.Forget(pipe.to.get());
  CHECK(poll.Wait(0).empty());
}

}  // namespace hvd::cli
