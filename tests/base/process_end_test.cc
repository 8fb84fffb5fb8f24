// SPDX-License-Identifier: Apache-2.0
#include "base/process_end.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/stable_hash.h"

namespace hvd {
namespace {

// How a child that does `act` ends.
template <class Act>
int StatusOf(Act act) {
  const pid_t child = fork();
  if (child == 0) {
    act();
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return status;
}

TEST_CASE("how a process ended, in words") {
  CHECK(DescribeEnd(StatusOf([] { _exit(7); })) == "exited with code 7");
  CHECK(DescribeEnd(StatusOf([] { raise(SIGKILL); })) == "was killed by signal 9 (Killed)");
  CHECK(DescribeKill(SIGTERM) == "was killed by signal 15 (Terminated)");
  CHECK(DescribeKill(SIGRTMIN + 1) ==
        "was killed by signal " + std::to_string(SIGRTMIN + 1) + " (real-time)");
}

TEST_CASE("a stable hash is FNV-1a, and heeds order, number and zeros") {
  CHECK(StableHash().Add("foobar").value() == 0x85944171f73967e8u);  // of the algorithm's authors
  const auto of = [](auto... numbers) {
    StableHash hash;
    (hash.Add(uint64_t(numbers)), ...);
    return hash.value();
  };
  CHECK(of(1, 2) != of(2, 1));
  CHECK(of(0) != of(0, 0));
  CHECK(of(uint64_t{1} << 63) != of(0));
  CHECK(of(3, 5, 8) == of(3, 5, 8));
}

}  // namespace
}  // namespace hvd
