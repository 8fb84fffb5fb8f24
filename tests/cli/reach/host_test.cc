// SPDX-License-Identifier: Apache-2.0
#include "cli/reach/host.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>

#include "proto/hello.h"

namespace hvd::cli {
namespace {

const std::string kMarker = "0123456789abcdef0123456789abcdef";

// A host whose socket holds `said` already; its writer is blocked, so that nothing follows.
struct Said {
  explicit Said(const std::string& said) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) abort();
    const int room = 1 << 20;
    setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    far.Reset(ends[1]);
    written = send(far.get(), said.data(), said.size(), MSG_DONTWAIT) ==
              static_cast<ssize_t>(said.size());
    port.Begin(Descriptor(ends[0]), Descriptor());
  }
  HostPort port;
  Descriptor far;
  bool written;
};

TEST_CASE("noise without end is seen at once, though its writer has no room for more") {
  Said host(std::string(3 * kMaxHelloNoise, 'y'));
  REQUIRE(host.written);
  const Greeting greeting = host.port.Greet(kMarker, "n1");
  CHECK(greeting.state == Greeting::kWrong);
  CHECK(greeting.cause == "its shell start-up files print without end");
}

TEST_CASE("our command's own word says that the login worked, and is no noise") {
  Said host("Welcome\nhvdrun-is-logged-in\nand more");
  CHECK_FALSE(host.port.logged_in());
  host.port.Greet(kMarker, "n1");
  CHECK(host.port.logged_in());
  CHECK(host.port.noise() == "Welcome\nand more");
}

TEST_CASE("a hello that one look cuts is found") {
  const std::string settings("\0\0\0\4\0\0\0\0\0", 9);
  Said host(std::string(kMaxHelloNoise - 10, 'y') + FormatHello(kMarker, {kLinkAProtocol, "1"}) +
            settings);
  REQUIRE(host.written);
  CHECK(host.port.Greet(kMarker, "n1").state == Greeting::kReady);
}

TEST_CASE("one look takes a bounded part of what is written to stderr without end") {
  char path[] = "/tmp/hvd-test.XXXXXX";
  Descriptor file(mkstemp(path));
  REQUIRE(file.valid());
  unlink(path);
  const std::string flood(8 << 20, '\n');
  REQUIRE(write(file.get(), flood.data(), flood.size()) == static_cast<ssize_t>(flood.size()));
  lseek(file.get(), 0, SEEK_SET);
  HostPort port;
  port.Begin(Descriptor(), std::move(file));
  // A look takes what a pipe holds, so that the last words of a process come in one.
  const size_t taken = port.TakeErrors().size();
  CHECK(taken >= 64 << 10);
  CHECK(taken <= 1 << 20);
}

}  // namespace
}  // namespace hvd::cli
