// SPDX-License-Identifier: Apache-2.0
// Which of a peer's addresses a rank calls, in which order, and whom it believes there.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>

#include "runtime/transport/tcp/address_list.h"
#include "runtime/transport/tcp/dialer.h"
#include "runtime/transport/tcp/handshake.h"
#include "runtime/transport/tcp/tcp_transport.h"
#include "tests/support/patience.h"

namespace hvd::rt::test {
namespace {

using Names = std::vector<std::string>;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

PeerAddress At(const std::string& host, uint16_t port = 4711, const std::string& device = "") {
  return {*MakeSocketAddress(host, port), device};
}

Names HostsOf(const std::vector<PeerAddress>& addresses) {
  Names hosts;
  for (const PeerAddress& one : addresses) hosts.push_back(one.at.Host());
  return hosts;
}

TEST_CASE("addresses travel with their interfaces") {
  const std::string text =
      EncodeAddressList({"host1", {At("10.0.0.1", 1, "eth0"), At("fd00::1", 65535, "a#b")}});
  CHECK(text == "host1 10.0.0.1#1#eth0 fd00::1#65535#a#b");
  const auto list = DecodeAddressList(text);
  REQUIRE(list.ok());
  CHECK(list->host == "host1");
  CHECK(HostsOf(list->addresses) == Names{"10.0.0.1", "fd00::1"});
  CHECK(list->addresses[1].at.Port() == 65535);
  CHECK(list->addresses[1].device == "a#b");
  for (const char* wrong : {"h 10.0.0.1#1", "h 10.0.0.1#0#eth0", "h 10.0.0.1#70000#e", "h x#1#e"}) {
    CHECK_FALSE(DecodeAddressList(wrong).ok());
  }
}

TEST_CASE("the end of the remote shell's connection is called first, addresses like ours last") {
  const std::vector<PeerAddress> all = {At("10.0.2.15"), At("10.1.0.1"), At("10.2.0.1")};
  CHECK(HostsOf(InCallingOrder(all, "", {})) == Names{"10.0.2.15", "10.1.0.1", "10.2.0.1"});
  CHECK(HostsOf(InCallingOrder(all, "10.2.0.1", {"10.0.2.15"})) ==
        Names{"10.2.0.1", "10.1.0.1", "10.0.2.15"});
  CHECK(HostsOf(InCallingOrder(all, "10.0.2.15", {"10.0.2.15"})) ==
        Names{"10.1.0.1", "10.2.0.1", "10.0.2.15"});
}

const std::string kSecret(kSecretBytes, 's');

// Makes the transport of one of three ranks.
std::unique_ptr<Transport> Make(int rank) {
  auto transport =
      MakeTcpTransport({.secret = kSecret, .rank = rank, .size = 3, .net_devices = "lo"});
  REQUIRE(transport.ok());
  return *std::move(transport);
}

// Where the list of addresses begins: behind kind, rank and mark.
size_t ListBegins(const std::string& address) {
  size_t at = 0;
  for (int i = 0; i < 3; ++i) at = address.find(' ', at) + 1;
  return at;
}

AddressList ListOf(Transport& transport) {
  const std::string address = *transport.Address();
  const auto list = DecodeAddressList(address.substr(ListBegins(address)));
  REQUIRE(list.ok());
  return *list;
}

// Somebody who listens at loopback and never says a word.
struct Silent {
  Socket door;
  PeerAddress place;
  explicit Silent(int backlog) {
    SocketAddress address = *MakeSocketAddress("127.0.0.1", 0);
    auto listening = ListenAt(&address, backlog);
    REQUIRE(listening.ok());
    door = *std::move(listening);
    place = {address, "lo"};
  }
};

// Nobody answers there: its queue is full, so the system drops whoever calls.
struct Dark : Silent {
  std::vector<Socket> callers;
  Dark() : Silent(0) {
    for (int i = 0; i < 4; ++i) {
      auto caller = BeginConnect(place.at);
      REQUIRE(caller.ok());
      callers.push_back(*std::move(caller));
    }
  }
};

// Returns what `transport` says of itself, with `others` before its own addresses.
std::string AddressBehind(Transport& transport, const std::vector<PeerAddress>& others) {
  const std::string address = *transport.Address();
  AddressList list = ListOf(transport);
  list.addresses.insert(list.addresses.begin(), others.begin(), others.end());
  return address.substr(0, ListBegins(address)) + EncodeAddressList(list);
}

// Three ranks in one thread.
struct Ranks {
  std::unique_ptr<Transport> low = Make(0), middle = Make(1), high = Make(2);

  // A message from rank 2 to rank 0, which is said to have `others` as its likelier addresses.
  // Returns what went wrong.
  std::string ExchangeBehind(const std::vector<PeerAddress>& others) {
    const std::vector<std::string> table = {AddressBehind(*low, others), *middle->Address(),
                                            *high->Address()};
    for (Transport* each : {low.get(), middle.get(), high.get()}) {
      if (absl::Status done = each->Connect(table); !done.ok()) return done.ToString();
    }
    int sent = 17;
    int came = 0;
    auto send = *high->Send(0, {1, 1}, &sent, sizeof(sent));
    auto receive = *low->Receive(2, {1, 1}, &came, sizeof(came));
    const auto end = steady_clock::now() + milliseconds(PatientMs(20000));
    while (steady_clock::now() < end) {
      for (Transport* each : {low.get(), middle.get(), high.get()}) each->Progress();
      const auto received = receive->Test();
      if (!received.ok()) return std::string(received.status().message());
      const auto done = send->Test();
      if (!done.ok()) return std::string(done.status().message());
      if (*received && *done) return came == 17 ? "" : "wrong bytes";
      pollfd fds[] = {{low->EventFd(), POLLIN, 0}, {high->EventFd(), POLLIN, 0}};
      poll(fds, 2, 10);
    }
    return "nothing comes";
  }
};

TEST_CASE("TCP: an address that nobody answers, or that refuses, does not keep the next waiting") {
  const Dark dark;
  PeerAddress closed;
  {
    const Silent once(1);
    closed = once.place;
  }
  const auto began = steady_clock::now();
  CHECK(Ranks().ExchangeBehind({dark.place, closed, At("192.0.2.1", 9), closed}) == "");
  CHECK(steady_clock::now() - began < milliseconds(PatientMs(4000)));
}

TEST_CASE("TCP: somebody else at a likelier address is not taken for the peer") {
  const Silent mute(8);
  CHECK(Ranks().ExchangeBehind({mute.place}) == "");
}

TEST_CASE("TCP: another rank of the same epoch at the peer's address is not taken for the peer") {
  Ranks ranks;
  // As where hosts have equal addresses.
  CHECK(ranks.ExchangeBehind(ListOf(*ranks.middle).addresses) == "");
}

// A dialer of its own, and peers that the test plays.
struct Dialled : DialerOwner {
  Poller poller;
  std::unique_ptr<Dialer> dialer;
  std::string where, why;

  Dialled(std::vector<PeerAddress> addresses, milliseconds head_start, milliseconds limit) {
    REQUIRE(poller.Open().ok());
    DialPlan plan{.secret = kSecret, .name = {}, .addresses = std::move(addresses), .limit = limit};
    plan.head_start = head_start;
    plan.patience = milliseconds(1);
    dialer = std::make_unique<Dialer>(plan, &poller, this);
  }
  void OnDialed(Dialer*, Socket, const std::string& at) override { where = at; }
  void OnDialFailed(Dialer*, const std::string& text) override { why = text; }

  template <class Condition>
  bool StepUntil(const Condition& condition) {
    const auto end = steady_clock::now() + milliseconds(PatientMs(20000));
    while (steady_clock::now() < end) {
      if (condition()) return true;
      dialer->OnTime(Clock::now());
      pollfd fd{poller.fd(), POLLIN, 0};
      poll(&fd, 1, 1);
      poller.Run();
    }
    return false;
  }
  // The connection that it makes to this door.
  Socket Accept(const Silent& there) {
    Socket socket;
    CHECK(StepUntil([&] {
      socket = Socket(accept4(there.door.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      return socket.open();
    }));
    return socket;
  }
  bool IsAnswered(const Socket& socket) {
    char byte;
    return recv(socket.fd(), &byte, 1, MSG_PEEK) > 0;
  }
};

void Challenge(const Socket& socket) {
  const std::string words = MakeChallenge(std::string(kNonceBytes, 'n'));
  REQUIRE(send(socket.fd(), words.data(), words.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(words.size()));
}

TEST_CASE("dialer: a busy peer that then speaks at two addresses is answered at the likelier") {
  const Silent first(8), second(8);
  Dialled dialled({first.place, second.place}, std::chrono::hours(1), std::chrono::hours(1));
  const Socket one = dialled.Accept(first);
  const Socket two = dialled.Accept(second);  // it was silent for longer than the patience
  Challenge(two);
  int turns = 0;
  dialled.StepUntil([&] { return ++turns > 50; });
  CHECK_FALSE(dialled.IsAnswered(two));
  Challenge(one);
  CHECK(dialled.StepUntil([&] { return dialled.IsAnswered(one); }));
  CHECK_FALSE(dialled.IsAnswered(two));
}

TEST_CASE("dialer: who is silent at the likelier address does not keep the other one unanswered") {
  const Silent first(8), second(8);
  Dialled dialled({first.place, second.place}, milliseconds(5), std::chrono::hours(1));
  const Socket one = dialled.Accept(first);
  const Socket two = dialled.Accept(second);
  Challenge(two);
  CHECK(dialled.StepUntil([&] { return dialled.IsAnswered(two); }));
}

TEST_CASE("dialer: it gives up when every address has failed for the limit, and names each") {
  PeerAddress closed;
  {
    const Silent once(1);
    closed = once.place;
  }
  closed.device = "eth7";
  Dialled dialled({closed, At("192.0.2.1", 9, "nat0")}, milliseconds(1), milliseconds(30));
  CHECK(dialled.StepUntil([&] { return !dialled.why.empty(); }));
  CHECK(dialled.why.find(closed.at.Text() + " (its eth7): connecting: Connection refused; ") == 0);
  CHECK(dialled.why.find("192.0.2.1:9 (its nat0): ") != std::string::npos);
}

TEST_CASE("dialer: an address that has been reached is waited for, whatever the others do") {
  const Silent first(8);
  Dialled dialled({first.place, At("192.0.2.1", 9)}, milliseconds(1), milliseconds(10));
  const Socket one = dialled.Accept(first);
  const auto end = steady_clock::now() + milliseconds(200);
  CHECK(dialled.StepUntil([&] { return steady_clock::now() > end; }));
  CHECK(dialled.why == "");
}

}  // namespace
}  // namespace hvd::rt::test
