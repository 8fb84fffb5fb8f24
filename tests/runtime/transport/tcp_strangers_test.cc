// SPDX-License-Identifier: Apache-2.0
// The TCP transport among strangers, and with a peer that knows the secret and behaves badly.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <thread>

#include "runtime/transport/address_head.h"
#include "runtime/transport/tcp/address_list.h"
#include "runtime/transport/tcp/frame.h"
#include "runtime/transport/tcp/handshake.h"
#include "runtime/transport/tcp/tcp_transport.h"
#include "tests/support/patience.h"

namespace hvd::rt::test {
namespace {

const std::string kSecret(kSecretBytes, 's');

std::unique_ptr<Transport> Make(int rank, int size, int limit_ms = 30000) {
  auto transport = MakeTcpTransport({.secret = kSecret,
                                     .rank = rank,
                                     .size = size,
                                     .net_devices = "lo",
                                     .connect_limit = std::chrono::milliseconds(limit_ms)});
  REQUIRE(transport.ok());
  return *std::move(transport);
}

// Two ranks in one thread, joined by hand.
struct Pair {
  std::unique_ptr<Transport> low = Make(0, 2), high = Make(1, 2);
  Pair() {
    const std::vector<std::string> addresses = {*low->Address(), *high->Address()};
    REQUIRE(low->Connect(addresses).ok());
    REQUIRE(high->Connect(addresses).ok());
  }
  // A message each way; what is wrong, or nothing.
  std::string Exchange(size_t bytes) {
    std::vector<char> there(bytes, 'a'), back(bytes, 'b'), room0(bytes), room1(bytes);
    std::vector<std::unique_ptr<TransportRequest>> requests;
    requests.push_back(*high->Receive(0, {1, 1}, room1.data(), bytes));
    requests.push_back(*low->Receive(1, {1, 1}, room0.data(), bytes));
    requests.push_back(*low->Send(1, {1, 1}, there.data(), bytes));
    requests.push_back(*high->Send(0, {1, 1}, back.data(), bytes));
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::seconds(PatientMs(20000) / 1000);
    for (auto& request : requests) {
      while (true) {
        const absl::StatusOr<bool> done = request->Test();
        if (!done.ok()) return done.status().ToString();
        if (*done) break;
        low->Progress();
        high->Progress();
        if (std::chrono::steady_clock::now() > end) return "nothing comes";
      }
    }
    return room0 == back && room1 == there ? "" : "wrong bytes";
  }
};

PeerAddress PlaceOf(Transport& transport) {
  const std::string text = *transport.Address();
  // kind, rank, mark, then the list
  size_t at = 0;
  for (int i = 0; i < 3; ++i) at = text.find(' ', at) + 1;
  const auto list = DecodeAddressList(text.substr(at));
  REQUIRE(list.ok());
  REQUIRE_FALSE(list->addresses.empty());
  return list->addresses[0];
}

SocketAddress WhereIs(Transport& transport) { return PlaceOf(transport).at; }

// Blocking, so that a test reads as it goes. Steps the listener until it has accepted.
Socket Call(Transport& transport) {
  const SocketAddress to = WhereIs(transport);
  Socket socket(::socket(to.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval limit = {10, 0};
  setsockopt(socket.fd(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  REQUIRE(connect(socket.fd(), to.get(), to.length) == 0);
  transport.Progress();
  return socket;
}

std::string ReadAll(const Socket& socket, size_t bytes) {
  std::string text(bytes, '\0');
  size_t had = 0;
  while (had < bytes) {
    const ssize_t n = recv(socket.fd(), text.data() + had, bytes - had, 0);
    if (n <= 0) break;
    had += static_cast<size_t>(n);
  }
  text.resize(had);
  return text;
}

void Say(const Socket& socket, const std::string& text) {
  (void)!send(socket.fd(), text.data(), text.size(), MSG_NOSIGNAL);
}

// Whether the transport hangs up, within some turns.
bool HangsUp(const Socket& socket, Transport& transport) {
  for (int i = 0; i < 1000; ++i) {
    transport.Progress();
    pollfd fd{socket.fd(), POLLIN, 0};
    if (poll(&fd, 1, 1) == 0) continue;
    char byte;
    if (recv(socket.fd(), &byte, 1, MSG_DONTWAIT) <= 0) return true;
  }
  return false;
}

size_t OpenDescriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& one : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

TEST_CASE("TCP: whoever does not know the secret gets a challenge and is hung up on") {
  Pair pair;
  std::string last_answer;
  const std::vector<std::function<std::string(const std::string&)>> strangers = {
      [](const std::string&) { return std::string(kAnswerBytes, '\0'); },
      [](const std::string&) { return std::string(kAnswerBytes, 'x'); },
      [](const std::string&) {
        return "GET / HTTP/1.1\r\nHost: localhost\r\n" + std::string(100, ' ');
      },
      [](const std::string& challenge) { return challenge + challenge; },  // reflected
      [](const std::string& challenge) {
        return MakeAnswer(std::string(kSecretBytes, 't'), challenge, {1, 0, 0}, *MakeNonce());
      },
      [](const std::string& challenge) {  // one bit of the proof is wrong
        std::string answer = MakeAnswer(kSecret, challenge, {1, 0, 0}, *MakeNonce());
        answer.back() ^= 1;
        return answer;
      },
      // Known, but nobody whom this rank expects.
      [](const std::string& c) {
        return MakeAnswer(kSecret, c, {0, 0, 0}, *MakeNonce());
      },
      [](const std::string& c) {
        return MakeAnswer(kSecret, c, {1, 1, 0}, *MakeNonce());
      },
      [](const std::string& c) {
        return MakeAnswer(kSecret, c, {2, 0, 0}, *MakeNonce());
      },
      [](const std::string& c) {
        return MakeAnswer(kSecret, c, {1, 0, 99}, *MakeNonce());
      },
  };
  for (size_t i = 0; i < strangers.size(); ++i) {
    INFO("stranger " << i);
    const Socket socket = Call(*pair.low);
    const std::string challenge = ReadAll(socket, kChallengeBytes);
    REQUIRE(IsChallenge(challenge));
    Say(socket, strangers[i](challenge));
    CHECK(HangsUp(socket, *pair.low));
  }
  CHECK(pair.Exchange(100000) == "");
}

TEST_CASE("TCP: an answer that was heard on the wire is of no use again") {
  auto low = Make(0, 3);
  REQUIRE(low->Connect({*low->Address(), *Make(1, 3)->Address(), *Make(2, 3)->Address()}).ok());
  const Socket first = Call(*low);
  const std::string challenge = ReadAll(first, kChallengeBytes);
  const std::string answer = MakeAnswer(kSecret, challenge, {1, 0, 0}, *MakeNonce());
  Say(first, answer);
  while (!low->Progress()) {
  }
  CHECK(CheckConfirmation(kSecret, challenge, answer, ReadAll(first, kConfirmationBytes)));
  const Socket second = Call(*low);
  ReadAll(second, kChallengeBytes);
  Say(second, answer);
  CHECK(HangsUp(second, *low));
  // Nor does a lane that is taken go to another, even to one that knows the secret.
  const Socket third = Call(*low);
  Say(third, MakeAnswer(kSecret, ReadAll(third, kChallengeBytes), {1, 0, 0}, *MakeNonce()));
  CHECK(HangsUp(third, *low));
}

TEST_CASE(
    "TCP: thousands who say nothing, or little by little, use up neither descriptors nor turns") {
  Pair pair;
  const size_t before = OpenDescriptors();
  const SocketAddress to = WhereIs(*pair.low);
  std::vector<Socket> strangers;
  for (int i = 0; i < 2000; ++i) {
    Socket socket(::socket(to.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(connect(socket.fd(), to.get(), to.length) == 0);
    if (i % 2 == 0) Say(socket, "h");
    strangers.push_back(std::move(socket));
    pair.low->Progress();
  }
  for (int i = 0; i < 1000; ++i) pair.low->Progress();
  CHECK(OpenDescriptors() <= before + strangers.size() + 64);
  for (const Socket& socket : strangers) Say(socket, "v");
  CHECK(pair.Exchange(300000) == "");
}

// The door's backlog is full of strangers, and as many come as are dropped.
TEST_CASE("TCP: peers find one another while strangers keep coming") {
  Pair pair;
  const SocketAddress to = WhereIs(*pair.low);
  std::atomic<bool> end{false};
  std::atomic<int> came{0};
  std::thread crowd([&] {
    std::vector<Socket> strangers(200);
    for (size_t i = 0; !end.load(); i = (i + 1) % strangers.size()) {
      strangers[i] =
          Socket(::socket(to.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      (void)!connect(strangers[i].fd(), to.get(), to.length);
      ++came;
    }
  });
  while (came.load() < 500) std::this_thread::yield();
  const std::string said = pair.Exchange(1000000);
  end.store(true);
  crowd.join();
  CHECK(said == "");
}

// Rank 1 as a program of the test: it proves that it knows the secret, and then misbehaves.
struct BadPeer {
  std::unique_ptr<Transport> low = Make(0, 2);
  Socket socket;
  BadPeer() {
    REQUIRE(low->Connect({*low->Address(), *Make(1, 2)->Address()}).ok());
    socket = Call(*low);
    const std::string challenge = ReadAll(socket, kChallengeBytes);
    Say(socket, MakeAnswer(kSecret, challenge, {1, 0, 0}, *MakeNonce()));
    pollfd fd{socket.fd(), POLLIN, 0};
    while (poll(&fd, 1, 1) == 0) low->Progress();
    REQUIRE(ReadAll(socket, kConfirmationBytes).size() == kConfirmationBytes);
  }
  void Say(const Socket& to, const std::string& text) { test::Say(to, text); }
  void SayFrame(const Frame& frame) {
    test::Say(socket, std::string(reinterpret_cast<const char*>(&frame), sizeof(frame)));
  }
  // Returns what a receive from it ends with.
  std::string Outcome() {
    int value = 0;
    auto request = low->Receive(1, {1, 1}, &value, sizeof(value));
    if (!request.ok()) return request.status().ToString();
    for (int i = 0; i < 2000; ++i) {
      const absl::StatusOr<bool> done = (*request)->Test();
      if (!done.ok()) return std::string(done.status().message());
      if (*done) return "done";
      pollfd fd{low->EventFd(), POLLIN, 0};
      poll(&fd, 1, 1);
      low->Progress();
    }
    return "pending";
  }
};

TEST_CASE("TCP: a peer's impossible lengths and unknown frames end its connection, with its name") {
  for (const Frame& wrong : {Frame{FrameKind::kSmall, 1, 1, ~uint64_t{0}, 0, 0},
                             Frame{FrameKind::kSmall, 1, 1, uint64_t{1} << 40, 0, 0},
                             Frame{FrameKind::kChunk, 1, 1, uint64_t{1} << 40, 1, 0},
                             Frame{static_cast<FrameKind>(999), 1, 1, 0, 0, 0}}) {
    BadPeer peer;
    peer.SayFrame(wrong);
    const std::string said = peer.Outcome();
    CHECK(said.find("rank 1 on ") == 0);
    CHECK(said.find("breaks the rules of hvd's transport") != std::string::npos);
  }
}

TEST_CASE("TCP: a peer that goes without a word is lost; one that says goodbye has left") {
  {
    BadPeer peer;
    peer.socket.Close();
    const std::string said = peer.Outcome();
    CHECK(said.find("rank 1 on ") == 0);
    CHECK(said.find("the other end closed the connection") != std::string::npos);
  }
  {
    BadPeer peer;
    Frame frame;
    frame.kind = FrameKind::kGoodbye;
    peer.SayFrame(frame);
    peer.socket.Close();
    CHECK(peer.Outcome() == "pending");
  }
}

TEST_CASE("TCP: a peer that nobody can reach is named with its address and the reason") {
  auto high = Make(1, 2, 300);
  std::string address;
  {
    auto low = Make(0, 2);
    address = *low->Address();
  }
  REQUIRE(high->Connect({address, *high->Address()}).ok());
  int value = 0;
  auto request = *high->Send(0, {1, 1}, &value, sizeof(value));
  absl::StatusOr<bool> done = false;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(PatientMs(20000) / 1000);
  while (done.ok() && std::chrono::steady_clock::now() < end) {
    pollfd fd{high->EventFd(), POLLIN, 0};
    poll(&fd, 1, 20000);  // its own clock wakes it
    high->Progress();
    done = request->Test();
  }
  REQUIRE_FALSE(done.ok());
  CHECK(absl::IsUnavailable(done.status()));
  const std::string said(done.status().message());
  CHECK(said.find("cannot connect from ") == 0);
  CHECK(said.find(" to rank 0 on ") != std::string::npos);
  CHECK(said.find(" at 127.0.0.1:") != std::string::npos);
  CHECK(said.find(" (its lo; from lo here): connecting: Connection refused; other interfaces than "
                  "lo may do: --network-interfaces") != std::string::npos);
}

TEST_CASE("TCP: it listens at the chosen interface only, and no longer when all have come") {
  Pair pair;
  const SocketAddress address = WhereIs(*pair.low);
  CHECK(address.Host() == "127.0.0.1");
  CHECK(address.Port() != 0);
  CHECK(pair.Exchange(100000) == "");
  const Socket late(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  CHECK(connect(late.fd(), address.get(), address.length) != 0);
}

TEST_CASE("TCP: a child that was forked does not keep a lost connection's descriptor alive") {
  Pair pair;
  CHECK(pair.Exchange(1000) == "");
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[1]);
    char byte;
    (void)!read(ends[0], &byte, 1);  // until the parent is done
    _exit(0);
  }
  close(ends[0]);
  char value = 0;
  auto request = *pair.low->Receive(1, {1, 9}, &value, 1);
  pair.high.reset();
  for (int i = 0; i < 100; ++i) pair.low->Progress();
  CHECK_FALSE(*request->Test());  // it has left: nothing is broken
  for (int i = 0; i < 100; ++i) pair.low->Progress();
  CHECK_FALSE(pair.low->Progress());  // and nothing is ready again and again
  close(ends[1]);
  waitpid(child, nullptr, 0);
}

TEST_CASE("TCP: a secret of another length, an unknown device and a wrong table are refused") {
  CHECK_FALSE(
      MakeTcpTransport({.secret = "short", .rank = 0, .size = 2, .net_devices = "lo"}).ok());
  const auto none =
      MakeTcpTransport({.secret = kSecret, .rank = 0, .size = 2, .net_devices = "nosuch0"});
  REQUIRE_FALSE(none.ok());
  CHECK(none.status().message().find("network devices nosuch0 (--network-interfaces") == 0);
  auto low = Make(0, 2);
  const std::string mine = *low->Address();
  CHECK_FALSE(low->Connect({mine}).ok());
  CHECK_FALSE(low->Connect({mine, ""}).ok());
  CHECK_FALSE(low->Connect({mine, mine}).ok());
  CHECK_FALSE(low->Connect({mine, *Make(1, 2)->Address() + " nonsense"}).ok());
  CHECK_FALSE(low->Connect({mine, PutAddressHead({"ucx", 1, 0}, "")}).ok());
}

}  // namespace
}  // namespace hvd::rt::test
