// SPDX-License-Identifier: Apache-2.0
#include "daemon/link_a/handshake.h"

#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <thread>

#include "base/descriptor.h"

namespace hvd::daemon {
namespace {

const std::string kSecret(32, 's');

struct Sides {
  absl::Status asked;
  absl::StatusOr<std::string> heard = absl::UnknownError("");
};

// Both at once, over a connection of their own.
Sides Meet(const std::string& caller, const std::string& called, const std::string& command) {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  Descriptor here(ends[0]), there(ends[1]);
  const TimePoint until = Clock::now() + std::chrono::seconds(20);
  Sides sides;
  std::thread other([&] {
    sides.heard = ProveAndHear(there.get(), called, until);
    there.Reset();
  });
  sides.asked = ProveAndAsk(here.get(), caller, command, until);
  here.Reset();
  other.join();
  return sides;
}

TEST_CASE("who share a secret understand each other") {
  for (const std::string& command : {std::string("run this"), std::string(20000, 'x')}) {
    const Sides sides = Meet(kSecret, kSecret, command);
    REQUIRE(sides.asked.ok());
    REQUIRE(sides.heard.ok());
    CHECK(*sides.heard == command);
  }
}

TEST_CASE("who does not know the secret is not heard, and hears nothing") {
  const Sides sides = Meet(std::string(32, 'x'), kSecret, "run this");
  CHECK_FALSE(sides.asked.ok());
  REQUIRE_FALSE(sides.heard.ok());
  CHECK(sides.heard.status().code() == absl::StatusCode::kPermissionDenied);
}

TEST_CASE("an empty or short secret is none") {
  CHECK_FALSE(Meet("", "", "run this").heard.ok());
  CHECK_FALSE(Meet("short", "short", "run this").heard.ok());
}

TEST_CASE("a caller who says nothing is not waited for beyond the time") {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  const Descriptor here(ends[0]), there(ends[1]);
  const auto heard =
      ProveAndHear(there.get(), kSecret, Clock::now() + std::chrono::milliseconds(20));
  CHECK(heard.status().code() == absl::StatusCode::kDeadlineExceeded);
}

TEST_CASE("a stranger's bytes are no command") {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  Descriptor here(ends[0]);
  const Descriptor there(ends[1]);
  const std::string words = "GET / HTTP/1.1\r\nHost: a\r\n\r\n" + std::string(200, '\xff');
  REQUIRE(write(here.get(), words.data(), words.size()) == static_cast<ssize_t>(words.size()));
  here.Reset();
  CHECK_FALSE(ProveAndHear(there.get(), kSecret, Clock::now() + std::chrono::seconds(20)).ok());
}

}  // namespace
}  // namespace hvd::daemon
