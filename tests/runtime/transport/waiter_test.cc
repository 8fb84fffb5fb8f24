// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/waiter.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/transport/loopback/loopback_transport.h"
#include "tests/support/patience.h"

namespace hvd::rt {
namespace {

using Clock = std::chrono::steady_clock;

// Sleeps at once, so that every wait goes through the doorbell.
constexpr WaitPolicy kSleepy{.spins = 0, .yields = 0};

class EventFds {
 public:
  explicit EventFds(int count) {
    for (int i = 0; i < count; ++i) fds_.push_back(eventfd(0, EFD_NONBLOCK));
  }
  ~EventFds() {
    for (const int fd : fds_) close(fd);
  }
  const int* data() const { return fds_.data(); }

 private:
  std::vector<int> fds_;
};

// Two ranks hand a counter to and fro; with a wake-up lost neither would come back. With event fds
// each has a transport too, over which nothing comes.
void PingPong(HostPage* page, const int* event_fds, int rounds) {
  std::atomic<int> turn{0};
  const LoopbackWorld world(2);
  const auto play = [&](int me) {
    const auto transport = world.TransportFor(me);
    Waiter waiter(page, me, event_fds, kSleepy);
    if (event_fds != nullptr) waiter.set_transport(transport.get());
    for (int round = me; round < rounds; round += 2) {
      if (!waiter.Until([&] { return turn.load(std::memory_order_acquire) == round; }).ok()) return;
      turn.store(round + 1, std::memory_order_release);
      waiter.Ring();
    }
  };
  std::thread other(play, 1);
  play(0);
  other.join();
  CHECK(turn == rounds);
}

TEST_CASE("no wake-up is lost, by futex") {
  auto page = std::make_unique<HostPage>();
  page->local_size = 2;
  PingPong(page.get(), nullptr, 40000);
  CHECK(page->bell.futex_sleepers == 0);
}

TEST_CASE("no wake-up is lost, by event fds") {
  auto page = std::make_unique<HostPage>();
  page->local_size = 2;
  const EventFds fds(2);
  PingPong(page.get(), fds.data(), 40000);
  CHECK(page->bell.fd_sleepers[0] == 0);
}

TEST_CASE("event fds of ranks beyond 64") {
  auto page = std::make_unique<HostPage>();
  page->local_size = 100;
  const EventFds fds(100);
  std::atomic<bool> set{false};
  std::thread sleeper([&] {
    const auto transport = LoopbackWorld(1).TransportFor(0);
    Waiter waiter(page.get(), 99, fds.data(), kSleepy);
    waiter.set_transport(transport.get());
    CHECK(waiter.Until([&] { return set.load(); }).ok());
  });
  Waiter ringer(page.get(), 0, fds.data(), kSleepy);
  set = true;
  ringer.Ring();
  sleeper.join();
}

// Rank 0's threads share its event fd and its transport, each with a counter of its own that rank 1
// answers: a ring, or a wake-up, that one took from the others would leave them asleep.
TEST_CASE("threads of one process sleep side by side, and each is woken") {
  constexpr int kThreads = 3;
  constexpr int kRounds = 5000;
  auto page = std::make_unique<HostPage>();
  page->local_size = 2;
  const EventFds fds(2);
  const LoopbackWorld world(2);
  const std::unique_ptr<Transport> transports[2] = {world.TransportFor(0), world.TransportFor(1)};
  std::atomic<int> turns[kThreads] = {};
  const auto play = [&](int rank, int thread) {
    Waiter waiter(page.get(), rank, fds.data(), kSleepy);
    waiter.set_transport(transports[rank].get());
    for (int round = rank; round < kRounds; round += 2) {
      if (!waiter.Until([&] { return turns[thread].load() == round; }).ok()) return;
      turns[thread].store(round + 1);
      waiter.Ring();
    }
  };
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    for (const int rank : {0, 1}) threads.emplace_back(play, rank, thread);
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& turn : turns) CHECK(turn == kRounds);
  CHECK(page->bell.fd_sleepers[0] == 0);
}

TEST_CASE("background work is moved along in every wait, and its step may be what is waited for") {
  class Countdown : public BackgroundWork {
   public:
    bool Step() override { return left > 0 && --left >= 0; }
    int left = 1000;
  };
  auto page = std::make_unique<HostPage>();
  page->local_size = 1;
  const EventFds fds(1);
  const auto transport = LoopbackWorld(1).TransportFor(0);
  Countdown work;
  Waiter waiter(page.get(), 0, fds.data(), kSleepy);
  waiter.set_transport(transport.get());
  waiter.set_background(&work);
  CHECK(waiter.Until([&] { return work.left == 0; }).ok());
}

TEST_CASE("a message wakes a rank that sleeps on its event fds") {
  const LoopbackWorld world(2);
  auto page = std::make_unique<HostPage>();
  page->local_size = 1;
  const EventFds fds(1);
  const auto sender = world.TransportFor(0);
  const auto receiver = world.TransportFor(1);
  for (int i = 0; i < 2000; ++i) {
    int got = 0;
    auto request = receiver->Receive(0, {1, 1}, &got, sizeof(got));
    std::thread other([&] {
      const int sent = i + 1;
      REQUIRE(sender->Send(1, {1, 1}, &sent, sizeof(sent)).ok());
    });
    Waiter waiter(page.get(), 0, fds.data(), kSleepy);
    waiter.set_transport(receiver.get());
    const absl::Status waited = waiter.Until([&] { return *(*request)->Test(); });
    other.join();
    REQUIRE(waited.ok());
    REQUIRE(got == i + 1);
  }
}

TEST_CASE("the epoch's end wakes spinners and sleepers, with its cause") {
  for (const WaitPolicy& policy : {kSleepy, WaitPolicy{.spins = 1 << 30}}) {
    auto page = std::make_unique<HostPage>();
    page->local_size = 2;
    std::atomic<bool> waits{false};
    absl::Status ended;
    std::thread waiting([&] {
      Waiter waiter(page.get(), 1, nullptr, policy);
      ended = waiter.Until([&] {
        waits = true;
        return false;
      });
    });
    while (!waits) std::this_thread::yield();
    const Clock::time_point start = Clock::now();
    AbortEpoch(page.get(), "rank 7 died", nullptr);
    waiting.join();
    CHECK(Clock::now() - start < std::chrono::milliseconds(PatientMs(1000)));
    CHECK(ended.code() == absl::StatusCode::kAborted);
    CHECK(ended.message() == "rank 7 died");
  }
}

TEST_CASE("what holds already is not waited for, even in an ended epoch") {
  auto page = std::make_unique<HostPage>();
  AbortEpoch(page.get(), "over", nullptr);
  Waiter waiter(page.get(), 0, nullptr, kSleepy);
  CHECK(waiter.Until([] { return true; }).ok());
  CHECK_FALSE(waiter.Check().ok());
}

TEST_CASE("ringing is silent while nobody sleeps") {
  auto page = std::make_unique<HostPage>();
  page->local_size = 2;
  Waiter waiter(page.get(), 0, nullptr, WaitPolicy{});
  waiter.Ring();
  CHECK(page->bell.word == 0);
  page->bell.futex_sleepers = 1;
  waiter.Ring();
  CHECK(page->bell.word == 1);
}

TEST_CASE("ranks that share cores hardly spin") {
  CHECK(WaitPolicy::For(2, 2).spins > 1000);
  CHECK_FALSE(WaitPolicy::For(2, 2).oversubscribed);
  CHECK(WaitPolicy::For(3, 2).spins < 100);
  CHECK(WaitPolicy::For(3, 2).oversubscribed);
}

}  // namespace
}  // namespace hvd::rt
