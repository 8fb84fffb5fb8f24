// SPDX-License-Identifier: Apache-2.0
#include "daemon/job/daemon.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <future>
#include <thread>

#include "tests/support/patience.h"

namespace hvd::daemon {
namespace {

using std::chrono::milliseconds;

// Longer than a busy machine lets a thread wait.
const milliseconds kPatience(PatientMs(1000));

// A daemon without a shim, that nobody gives a launch to, on a thread of its own.
struct Waiting {
  Waiting() {
    thread = std::thread([this] {
      daemon.Run();
      over.set_value();
    });
  }
  ~Waiting() {
    daemon.DriverGone("the test is over");
    thread.join();
  }
  bool EndsWithin(milliseconds time) { return ended.wait_for(time) == std::future_status::ready; }

  Daemon daemon{absl::UnavailableError("none here"), [](const v1::Event&) {}, kPatience};
  std::promise<void> over;
  std::future<void> ended = over.get_future();
  std::thread thread;
};

TEST_CASE("who is neither launched nor heard of ends") {
  Waiting waiting;
  CHECK(waiting.EndsWithin(5 * kPatience));
}

TEST_CASE("a driver that is heard waits for its other hosts as long as it likes") {
  Waiting waiting;
  const TimePoint end = Clock::now() + kPatience + kPatience / 2;
  while (Clock::now() < end) {
    waiting.daemon.Echoed(Clock::now());
    REQUIRE_FALSE(waiting.EndsWithin(milliseconds(5)));
  }
  CHECK(waiting.EndsWithin(5 * kPatience));
}

}  // namespace
}  // namespace hvd::daemon
