// SPDX-License-Identifier: Apache-2.0
// A child that holds a TCP connection, as srun does.
#include "cli/reach/prompt_sockets.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "cli/reach/execute.h"

namespace hvd::cli {
namespace {

// Both ends of a connection over loopback.
struct Connection {
  Connection() {
    const Descriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    auto* const name = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(bind(listener.get(), name, length) == 0);
    REQUIRE(listen(listener.get(), 1) == 0);
    REQUIRE(getsockname(listener.get(), name, &length) == 0);
    caller = Descriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(connect(caller.get(), name, length) == 0);
    called = Descriptor(accept(listener.get(), nullptr, nullptr));
    REQUIRE(called.valid());
  }

  Descriptor caller, called;
};

// The parent's descriptor is of the same open connection as the child's.
bool IsPrompt(const Descriptor& socket) {
  int on = -1;
  socklen_t length = sizeof(on);
  REQUIRE(getsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, &length) == 0);
  return on != 0;
}

// It waits for a signal.
struct Child {
  Child() : pid(fork()) {
    if (pid == 0) {
      for (;;) pause();
    }
    REQUIRE(pid > 0);
    pidfd = HoldChild(pid);
    REQUIRE(pidfd.valid());
  }
  ~Child() {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }

  pid_t pid;
  Descriptor pidfd;
};

bool KernelAllows(const Child& child) {
  return Descriptor(static_cast<int>(syscall(SYS_pidfd_getfd, child.pidfd.get(), 0, 0))).valid();
}

TEST_CASE("the connections of a child send small words at once", "[reach]") {
  const Connection held;
  const Child child;
  if (!KernelAllows(child)) {
    WARN("SKIP: this kernel lets nobody take another's descriptors");
    return;
  }
  REQUIRE_FALSE(IsPrompt(held.caller));
  CHECK(MakeSocketsPrompt(child.pid, child.pidfd) >= 2);
  CHECK(IsPrompt(held.caller));
  CHECK(IsPrompt(held.called));
}

TEST_CASE("a child without a connection, and one that is gone, have none", "[reach]") {
  int pair[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  const Descriptor one(pair[0]), other(pair[1]);
  Child child;
  CHECK(MakeSocketsPrompt(child.pid, child.pidfd) == 0);
  kill(child.pid, SIGKILL);
  waitid(P_PID, child.pid, nullptr, WEXITED | WNOWAIT);
  CHECK(MakeSocketsPrompt(child.pid, child.pidfd) == 0);
}

}  // namespace
}  // namespace hvd::cli
