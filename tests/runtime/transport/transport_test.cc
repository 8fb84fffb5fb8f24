// SPDX-License-Identifier: Apache-2.0
// One suite for every implementation of Transport; ranks are threads.
#include "runtime/transport/transport.h"

#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <numeric>
#include <thread>

#include "runtime/transport/waiter.h"
#include "tests/runtime/collective/rank_threads.h"
#include "tests/runtime/transport/transport_world.h"
#include "tests/support/patience.h"

namespace hvd::rt::test {
namespace {

using Request = std::unique_ptr<TransportRequest>;
using Bytes = std::vector<unsigned char>;

// Sleeps on the descriptor between steps, as a rank without a core of its own does.
std::string Finish(Transport& transport, const Request& request) {
  for (;;) {
    const absl::StatusOr<bool> done = request->Test();
    if (!done.ok()) return done.status().ToString();
    if (*done) return "";
    if (transport.Progress() || !transport.Arm()) continue;
    pollfd fd{transport.EventFd(), POLLIN, 0};
    if (poll(&fd, 1, 20000) == 0) return "nothing came in 20 s";
  }
}

Bytes Pattern(size_t bytes, int seed) {
  Bytes data(bytes);
  for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<unsigned char>(i * 7 + i / 255 + seed);
  return data;
}

using Body = std::function<std::string(Transport& transport, int rank)>;
void OnAllTransports(int size, const Body& body) {
  for (const TransportKind kind : kTransportKinds) {
    INFO(NameOf(kind));
    TransportWorld world(kind, size);
    const std::string complaint = RunRanks(size, [&](int rank) -> std::string {
      auto transport = world.Join(rank);
      if (!transport.ok()) return transport.status().ToString();
      std::string wrong = body(**transport, rank);
      world.Leave();
      return wrong;
    });
    REQUIRE(complaint == "");
  }
}

TEST_CASE("messages of all sizes, every pair at once") {
  OnAllTransports(3, [](Transport& transport, int rank) -> std::string {
    for (const size_t bytes : {0, 1, 100, 8000, 40000, 1000001, 5000000}) {
      std::vector<Bytes> received(3, Bytes(bytes));
      const Bytes mine = Pattern(bytes, rank);
      std::vector<Request> requests;
      for (int peer = 0; peer < 3; ++peer) {
        if (peer == rank) continue;
        auto receive = transport.Receive(peer, {1, 5}, received[peer].data(), bytes);
        auto send = transport.Send(peer, {1, 5}, mine.data(), bytes);
        if (!receive.ok() || !send.ok()) return "refused";
        requests.push_back(*std::move(receive));
        requests.push_back(*std::move(send));
      }
      for (const Request& request : requests) {
        if (std::string wrong = Finish(transport, request); !wrong.empty()) return wrong;
      }
      for (int peer = 0; peer < 3; ++peer) {
        if (peer != rank && received[peer] != Pattern(bytes, peer)) return "wrong bytes";
      }
    }
    return "";
  });
}

// The sender hears of nothing but room for more.
TEST_CASE("one way only: a rank sends far more than the system takes at a time") {
  OnAllTransports(2, [](Transport& transport, int rank) -> std::string {
    constexpr int kMessages = 4;
    constexpr size_t kBytes = 24 << 20;
    std::vector<Bytes> data(kMessages, Bytes(kBytes));
    std::vector<Request> requests;
    for (int i = 0; i < kMessages; ++i) {
      if (rank == 0) data[i] = Pattern(kBytes, i);
      auto request = rank == 0 ? transport.Send(1, {1, 1}, data[i].data(), kBytes)
                               : transport.Receive(0, {1, 1}, data[i].data(), kBytes);
      if (!request.ok()) return request.status().ToString();
      requests.push_back(*std::move(request));
    }
    for (int i = 0; i < kMessages; ++i) {
      if (std::string wrong = Finish(transport, requests[i]); !wrong.empty()) return wrong;
      if (data[i] != Pattern(kBytes, i)) return "wrong bytes";
    }
    return "";
  });
}

TEST_CASE("messages of one peer and tag keep their order, received early or late") {
  OnAllTransports(2, [](Transport& transport, int rank) -> std::string {
    constexpr int kMessages = 200;
    std::vector<int> values(kMessages);
    std::vector<Request> requests;
    if (rank == 0) std::iota(values.begin(), values.end(), 0);
    for (int& value : values) {
      auto request = rank == 0 ? transport.Send(1, {2, 9}, &value, sizeof(value))
                               : transport.Receive(0, {2, 9}, &value, sizeof(value));
      if (!request.ok()) return request.status().ToString();
      requests.push_back(*std::move(request));
    }
    for (const Request& request : requests) {
      if (std::string wrong = Finish(transport, request); !wrong.empty()) return wrong;
    }
    for (int i = 0; i < kMessages; ++i) {
      if (values[i] != i) return "out of order";
    }
    return "";
  });
}

TEST_CASE("tags keep messages apart, whatever the order of arrival") {
  OnAllTransports(2, [](Transport& transport, int rank) -> std::string {
    const MessageTag tags[] = {{1, 1}, {1, 2}, {2, 1}, {63, 1048575}};
    int values[4] = {10, 11, 12, 13};
    std::vector<Request> requests;
    for (int i = 0; i < 4; ++i) {
      const int at = rank == 0 ? i : 3 - i;
      if (rank == 1) values[at] = -1;
      auto request = rank == 0 ? transport.Send(1, tags[at], &values[at], sizeof(int))
                               : transport.Receive(0, tags[at], &values[at], sizeof(int));
      if (!request.ok()) return request.status().ToString();
      requests.push_back(*std::move(request));
    }
    for (const Request& request : requests) {
      if (std::string wrong = Finish(transport, request); !wrong.empty()) return wrong;
    }
    for (int i = 0; i < 4; ++i) {
      if (values[i] != 10 + i) return "a message went to another tag";
    }
    return "";
  });
}

TEST_CASE("a message of the wrong length is an error") {
  OnAllTransports(2, [](Transport& transport, int rank) -> std::string {
    for (const size_t sent : {3, 5}) {
      const MessageTag tag{1, static_cast<uint32_t>(sent)};
      char data[8] = {};
      auto request =
          rank == 0 ? transport.Send(1, tag, data, sent) : transport.Receive(0, tag, data, 4);
      if (!request.ok()) return request.status().ToString();
      const std::string said = Finish(transport, *request);
      if (rank == 1 && said.empty()) return "a message of another length was taken";
    }
    return "";
  });
}

TEST_CASE("a receive that is destroyed is cancelled: its memory stays untouched") {
  OnAllTransports(2, [](Transport& transport, int rank) -> std::string {
    int dropped = -1;
    int kept = -1;
    int sent = 42;
    if (rank == 1) {
      { auto cancelled = transport.Receive(0, {3, 1}, &dropped, sizeof(dropped)); }
      auto ready = transport.Send(0, {3, 2}, nullptr, 0);
      auto receive = transport.Receive(0, {3, 1}, &kept, sizeof(kept));
      std::string wrong = Finish(transport, *ready);
      if (wrong.empty()) wrong = Finish(transport, *receive);
      if (!wrong.empty()) return wrong;
      return dropped == -1 && kept == 42 ? "" : "the cancelled receive took the message";
    }
    auto ready = transport.Receive(1, {3, 2}, nullptr, 0);
    if (std::string wrong = Finish(transport, *ready); !wrong.empty()) return wrong;
    auto send = transport.Send(1, {3, 1}, &sent, sizeof(sent));
    return Finish(transport, *send);
  });
}

constexpr size_t kLarge = size_t{8} << 20;  // begun in pieces, whichever transport

// Both sides move for a while, or until `done`.
void Drive(Transport& transport, const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  while (!done() && std::chrono::steady_clock::now() < end) {
    transport.Progress();
    std::this_thread::yield();
  }
}

TEST_CASE("a send that was under way reads nothing of its memory once its side has stopped") {
  std::atomic<bool> stopped{false};
  OnAllTransports(2, [&](Transport& transport, int rank) -> std::string {
    Bytes data(kLarge, rank == 0 ? 1 : 0);
    if (rank == 0) {
      stopped = false;
      { auto abandoned = transport.Send(1, {3, 1}, data.data(), data.size()); }
      transport.Stop();
      std::fill(data.begin(), data.end(), 0xee);  // as its owner, or who has the memory next
      stopped = true;
      if (transport.Send(1, {3, 2}, data.data(), 1).ok()) return "it sends after it has stopped";
      if (transport.Receive(1, {3, 2}, data.data(), 1).ok()) return "it receives after that";
      Drive(transport, [] { return false; });
      return transport.Progress() ? "it moves after it has stopped" : "";
    }
    while (!stopped) std::this_thread::yield();
    const auto receive = transport.Receive(0, {3, 1}, data.data(), data.size());
    if (receive.ok()) {
      Drive(transport, [&] { return !(*receive)->Test().ok() || *(*receive)->Test(); });
    }
    const bool read = std::find(data.begin(), data.end(), 0xee) != data.end();
    return read ? "memory was read that its owner had back" : "";
  });
}

TEST_CASE("a receive whose message was coming writes nothing once its side has stopped") {
  std::atomic<bool> sending{false}, over{false};
  OnAllTransports(2, [&](Transport& transport, int rank) -> std::string {
    Bytes data(kLarge, rank == 0 ? 0xee : 0);
    if (rank == 0) {
      over = false;
      auto send = transport.Send(1, {3, 1}, data.data(), data.size());
      sending = true;
      while (!over) transport.Progress();
      sending = false;
      return "";
    }
    while (!sending) std::this_thread::yield();
    {
      auto receive = transport.Receive(0, {3, 1}, data.data(), data.size());
      Drive(transport, [&] { return *static_cast<volatile unsigned char*>(data.data()) != 0; });
    }
    transport.Stop();
    std::fill(data.begin(), data.end(), 1);
    Drive(transport, [] { return false; });
    over = true;
    const bool written = std::find(data.begin(), data.end(), 0xee) != data.end();
    return written ? "memory was written that its owner had back" : "";
  });
}

TEST_CASE("a rank that only ever receives is woken") {
  OnAllTransports(3, [](Transport& transport, int rank) -> std::string {
    int value = rank;
    auto request = rank == 0 ? transport.Receive(2, {4, 1}, &value, sizeof(value))
                             : transport.Send(rank == 2 ? 0 : 2, {4, 1}, &value, sizeof(value));
    std::string wrong = Finish(transport, *request);
    if (wrong.empty() && rank == 2) {
      auto from_one = transport.Receive(1, {4, 1}, &value, sizeof(value));
      wrong = Finish(transport, *from_one);
    }
    return wrong.empty() && rank == 0 && value != 2 ? "wrong value" : wrong;
  });
}

// Every thread waits for its own message, and progresses those of the others as it does.
TEST_CASE("several threads of a rank share its transport: each gets its messages and is woken") {
  OnAllTransports(2, [](Transport& transport, int rank) -> std::string {
    constexpr int kThreads = 3;
    constexpr int kRounds = 1000;
    HostPage page;
    page.local_size = 1;
    const int event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    const auto play = [&](int thread) -> std::string {
      Waiter waiter(&page, 0, &event_fd, WaitPolicy{.spins = thread * 100, .yields = thread});
      waiter.set_transport(&transport);
      std::vector<int> data(thread == 0 ? 50000 : 1);
      const size_t bytes = data.size() * sizeof(int);
      const MessageTag tag{static_cast<uint16_t>(30 + thread), 1};
      const int rounds = thread == 0 ? kRounds / 10 : kRounds;
      for (int round = 0; round < rounds; ++round) {
        if (round % 2 == rank) std::fill(data.begin(), data.end(), round);
        auto request = round % 2 == rank ? transport.Send(1 - rank, tag, data.data(), bytes)
                                         : transport.Receive(1 - rank, tag, data.data(), bytes);
        if (!request.ok()) return request.status().ToString();
        const absl::Status waited = waiter.Until([&] {
          const auto done = (*request)->Test();
          return !done.ok() || *done;
        });
        if (!waited.ok()) return waited.ToString();
        if (data.back() != round) return "wrong data";
      }
      return "";
    };
    std::string complaint = RunRanks(kThreads, play);
    close(event_fd);
    return complaint;
  });
}

TEST_CASE("UCX: with a receive in the air, throwing the transport away is quick") {
  TransportWorld world(TransportKind::kUcx, 2);
  const std::string complaint = RunRanks(2, [&](int rank) -> std::string {
    auto transport = world.Join(rank);
    if (!transport.ok()) return transport.status().ToString();
    std::vector<char> data(1 << 22);
    auto receive = (*transport)->Receive(1 - rank, {1, 1}, data.data(), data.size());
    auto send = (*transport)->Send(1 - rank, {1, 2}, data.data(), data.size());
    for (int i = 0; i < 100; ++i) (*transport)->Progress();
    world.Leave();
    const auto start = std::chrono::steady_clock::now();
    receive->reset();
    send->reset();
    transport->reset();
    const auto took = std::chrono::steady_clock::now() - start;
    return took < std::chrono::milliseconds(PatientMs(1000)) ? "" : "slow";
  });
  CHECK(complaint == "");
}

TEST_CASE("UCX: an address of another epoch, of another rank, or none is refused") {
  const auto make = [](uint64_t token, int rank) {
    return MakeUcxTransport({.token = token, .rank = rank, .size = 2, .net_devices = "lo"});
  };
  auto one = make(1, 0);
  auto other_epoch = make(2, 1);
  auto same_rank = make(1, 0);
  REQUIRE(one.ok());
  const std::string mine = *(*one)->Address();
  CHECK_FALSE((*one)->Connect({mine}).ok());
  CHECK_FALSE((*one)->Connect({mine, ""}).ok());
  CHECK_FALSE((*one)->Connect({mine, *(*other_epoch)->Address()}).ok());
  CHECK_FALSE((*one)->Connect({mine, *(*same_rank)->Address()}).ok());
}

TEST_CASE("UCX leaves the signal handlers alone and tells its version") {
  CHECK(UcxVersion().substr(0, 2) == "1.");
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action = {};
    if (sigaction(number, nullptr, &action) != 0 || action.sa_handler == SIG_DFL) continue;
    Dl_info place = {};
    if (dladdr(reinterpret_cast<void*>(action.sa_handler), &place) == 0) continue;  // SIG_IGN
    INFO("signal " << number << " is handled by " << place.dli_fname);
    CHECK(std::string(place.dli_fname).find("libuc") == std::string::npos);
  }
}

TEST_CASE("UCX: a device that does not exist is an error that names it") {
  const auto none =
      MakeUcxTransport({.token = 1, .rank = 0, .size = 1, .net_devices = "nosuch0", .tls = "tcp"});
  REQUIRE_FALSE(none.ok());
  CHECK(none.status().message().find("nosuch0") != std::string::npos);
}

}  // namespace
}  // namespace hvd::rt::test
