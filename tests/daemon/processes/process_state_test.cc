// SPDX-License-Identifier: Apache-2.0
#include "daemon/processes/process_state.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <thread>

namespace hvd::daemon {
namespace {

TEST_CASE("a process that was stopped is told from one that waits, whatever it is called") {
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_NAME, ") T 1 (");
    raise(SIGSTOP);
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, WUNTRACED) == child);
  CHECK(StateOf(child).letter == 'T');
  CHECK(StateOf(child).stopped());
  CHECK_FALSE(StateOf(child).exiting);
  kill(child, SIGKILL);
  siginfo_t info{};
  REQUIRE(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) == 0);
  CHECK(StateOf(child).exiting);  // a zombie
  CHECK_FALSE(StateOf(child).stopped());
  waitpid(child, &status, 0);
  CHECK(StateOf(child).letter == '?');
  CHECK_FALSE(StateOf(getpid()).stopped());
  CHECK_FALSE(StateOf(getpid()).exiting);
}

// A process that ends closes its files before it can be waited for: between the two it is told from
// one that lives on without them.
TEST_CASE("a process whose first thread has ended is ending, though it is not gone yet") {
  const pid_t child = fork();
  if (child == 0) {
    std::thread([] { pause(); }).detach();
    syscall(SYS_exit, 0);  // of this thread alone
  }
  while (!StateOf(child).exiting) std::this_thread::yield();
  siginfo_t info{};
  info.si_pid = 0;
  REQUIRE(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0);
  CHECK(info.si_pid == 0);  // it cannot be waited for
  kill(child, SIGKILL);
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
}

}  // namespace
}  // namespace hvd::daemon
