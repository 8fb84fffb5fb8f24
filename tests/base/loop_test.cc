// SPDX-License-Identifier: Apache-2.0
#include "base/loop.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <thread>

namespace hvd {
namespace {

using std::chrono::milliseconds;

TEST_CASE("deadlines come in order, cancelled ones never") {
  Loop loop;
  std::string order;
  const TimePoint now = Clock::now();
  loop.At(now + milliseconds(20), [&] { order += "b"; });
  loop.At(now + milliseconds(10), [&] { order += "a"; });
  const Loop::TimerId never = loop.At(now + milliseconds(15), [&] { order += "x"; });
  loop.At(now + milliseconds(30), [&] { loop.Quit(); });
  loop.Cancel(never);
  loop.Run();
  CHECK(order == "ab");
}

TEST_CASE("a process that is stopped is continued when its loop has something due") {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    Loop loop;
    loop.ContinueWhenDue(milliseconds(20));
    loop.At(Clock::now() + milliseconds(50), [] { raise(SIGSTOP); });
    loop.At(Clock::now() + milliseconds(100), [] { raise(SIGSTOP); });
    loop.At(Clock::now() + milliseconds(150), [] { _exit(7); });
    loop.Run();
    _exit(1);
  }
  int status = 0;
  for (int i = 0; i < 2; ++i) {
    REQUIRE(waitpid(child, &status, WUNTRACED) == child);
    CHECK(WIFSTOPPED(status));
  }
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 7));
}

TEST_CASE("calls posted by other threads run in the loop's") {
  Loop loop;
  std::thread::id ran_in;
  std::thread other([&] {
    loop.Post([&] { ran_in = std::this_thread::get_id(); });
    loop.Quit();
  });
  loop.Run();
  other.join();
  CHECK(ran_in == std::this_thread::get_id());
}

TEST_CASE("a handler may forget another descriptor of the same batch") {
  Loop loop;
  int pairs[2][2];
  for (auto& pair : pairs) {
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    REQUIRE(write(pair[1], "x", 1) == 1);
  }
  int calls = 0;
  for (int i : {0, 1}) {
    loop.Watch(pairs[i][0], EPOLLIN, [&, i](uint32_t) {
      ++calls;
      loop.Forget(pairs[0][0]);
      loop.Forget(pairs[1 - i][0]);
      loop.Forget(pairs[1][0]);
      loop.Quit();
    });
  }
  loop.Run();
  CHECK(calls == 1);
  for (auto& pair : pairs) {
    close(pair[0]);
    close(pair[1]);
  }
}

}  // namespace
}  // namespace hvd
