// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/ucx/listener_filter.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/runtime/collective/rank_threads.h"
#include "tests/runtime/transport/transport_world.h"
#include "tests/support/patience.h"

namespace hvd::rt::test {
namespace {

sockaddr_in AddressOf(int fd) {
  sockaddr_in address = {};
  socklen_t length = sizeof(address);
  (void)!getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  return address;
}

// Whether a call from 127.0.0.<last> gets through to a socket that listens at 127.0.0.1. The one
// that must not gets a shorter time than the one that must.
bool GetsThrough(int last, const sockaddr_in& to, int ms) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in from = {};
  from.sin_family = AF_INET;
  from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + last - 1);
  (void)!bind(fd, reinterpret_cast<const sockaddr*>(&from), sizeof(from));
  (void)!connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to));
  pollfd ready{fd, POLLOUT, 0};
  poll(&ready, 1, ms);
  const bool through = (ready.revents & POLLOUT) != 0 && (ready.revents & (POLLERR | POLLHUP)) == 0;
  close(fd);
  return through;
}

constexpr int kNever = 300;

TEST_CASE("a filter lets the job's hosts connect, of either kind of address, and nobody else") {
  const int door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in any = {};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(bind(door, reinterpret_cast<const sockaddr*>(&any), sizeof(any)) == 0);
  REQUIRE(listen(door, 16) == 0);
  const sockaddr_in to = AddressOf(door);
  CHECK(GetsThrough(9, to, PatientMs(10000)));
  REQUIRE(AttachFilter(door, FilterFor({"fd00::1", "10.0.0.1", "127.0.0.3", "127.0.0.4"})).ok());
  CHECK(GetsThrough(3, to, PatientMs(10000)));
  CHECK(GetsThrough(4, to, PatientMs(10000)));
  CHECK_FALSE(GetsThrough(9, to, kNever));
  REQUIRE(AttachFilter(door, FilterForNobody()).ok());
  CHECK_FALSE(GetsThrough(3, to, kNever));
  // Thousands of hosts: a filter has no room for them, and must not lock out the job.
  std::vector<std::string> many;
  for (int i = 0; i < 5000; ++i) {
    many.push_back("10.0." + std::to_string(i / 250) + "." + std::to_string(i % 250));
  }
  REQUIRE(AttachFilter(door, FilterFor(many)).ok());
  CHECK(GetsThrough(9, to, PatientMs(10000)));
  close(door);
}

TEST_CASE("UCX: its listening sockets are found, and only the job's hosts reach them") {
  const std::vector<int> before = ListeningSockets();
  TransportWorld world(TransportKind::kUcx, 2);
  const std::string complaint = RunRanks(2, [&](int rank) -> std::string {
    auto transport = world.Join(rank);
    if (!transport.ok()) return transport.status().ToString();
    world.Leave();
    std::string wrong;
    if (rank == 0) {
      int doors = 0;
      for (const int fd : ListeningSockets()) {
        if (std::find(before.begin(), before.end(), fd) != before.end()) continue;
        ++doors;
        if (GetsThrough(9, AddressOf(fd), kNever)) wrong = "a stranger's host got through";
      }
      if (doors != 2) wrong = "not a door a rank";
    }
    int value = rank;
    auto request = rank == 0 ? (*transport)->Send(1, {1, 1}, &value, sizeof(value))
                             : (*transport)->Receive(0, {1, 1}, &value, sizeof(value));
    while (!*(*request)->Test()) (*transport)->Progress();
    world.Leave();
    return wrong;
  });
  CHECK(complaint == "");
}

}  // namespace
}  // namespace hvd::rt::test
