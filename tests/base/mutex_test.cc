// SPDX-License-Identifier: Apache-2.0
#include "base/mutex.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>
#include <vector>

namespace hvd {
namespace {

using Clock = std::chrono::steady_clock;

// Turns that two threads give one another through a mutex and a condition.
class Turns {
 public:
  // Waits until it is `turn`, then gives the next one.
  void Take(int turn) {
    MutexLock lock(&mutex_);
    while (turn_ != turn) changed_.Wait(&mutex_);
    order_.push_back(turn);
    ++turn_;
    lock.Unlock();
    changed_.NotifyAll();
  }
  std::vector<int> order() {
    const MutexLock lock(&mutex_);
    return order_;
  }

 private:
  Mutex mutex_;
  Condition changed_;
  int turn_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<int> order_ ABSL_GUARDED_BY(mutex_);
};

// TryLock of a thread that does not hold it.
bool IsFree(Mutex* mutex) {
  bool free = false;
  std::thread([mutex, &free] {
    if (mutex->TryLock()) {
      free = true;
      mutex->Unlock();
    }
  }).join();
  return free;
}

TEST_CASE("a lock is held for its scope, but for the parts between Unlock and Lock") {
  Mutex mutex;
  {
    MutexLock lock(&mutex);
    CHECK_FALSE(IsFree(&mutex));
    lock.Unlock();
    CHECK(IsFree(&mutex));
    lock.Lock();
    CHECK_FALSE(IsFree(&mutex));
  }
  CHECK(IsFree(&mutex));
  {
    MutexLock lock(&mutex);
    lock.Unlock();
  }
  CHECK(IsFree(&mutex));
}

TEST_CASE("a waiting thread holds the mutex again when it goes on") {
  Turns turns;
  std::thread odd([&] {
    for (int turn = 1; turn < 100; turn += 2) turns.Take(turn);
  });
  for (int turn = 0; turn < 100; turn += 2) turns.Take(turn);
  odd.join();
  const std::vector<int> order = turns.order();
  REQUIRE(order.size() == 100);
  for (int turn = 0; turn < 100; ++turn) CHECK(order[turn] == turn);
}

TEST_CASE("a wait with an end comes back at its end, and with the mutex") {
  Mutex mutex;
  Condition never;
  MutexLock lock(&mutex);
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(5);
  while (never.WaitUntil(&mutex, end)) {
    CHECK_FALSE(IsFree(&mutex));
  }
  CHECK(Clock::now() >= end);
  CHECK_FALSE(IsFree(&mutex));
}

TEST_CASE("a shared mutex lets many in together, or one alone") {
  SharedMutex mutex;
  std::atomic<int> inside{0};
  std::atomic<bool> alone{false};
  const auto share = [&] {
    const ReaderLock lock(&mutex);
    ++inside;
    while (inside < 2) std::this_thread::yield();  // each waits for the other, within the lock
  };
  std::thread one(share), other(share);
  one.join();
  other.join();
  CHECK(inside == 2);

  std::thread writer;
  {
    const ReaderLock lock(&mutex);
    writer = std::thread([&] {
      ExclusiveLock alone_lock(&mutex);
      alone = true;
      alone_lock.Unlock();
    });
    CHECK_FALSE(alone);
  }
  writer.join();
  CHECK(alone);
  const ExclusiveLock free_again(&mutex);
}

}  // namespace
}  // namespace hvd
