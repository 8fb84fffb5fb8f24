// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/waiter.h"

#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>

namespace hvd::rt {
namespace {

// How long a rank that lost a peer waits to be told why: a silent daemon's lease is longer, a death
// is told at once.
constexpr std::chrono::seconds kCauseTime(3);

// A yield that takes longer has given the core to somebody who keeps it.
constexpr auto kLongYield = std::chrono::microseconds(100);
// After a wake by a neighbour for something else: what is missing is often on its way. Not so what
// comes over a wire; and there every look is a system call, which adds up on a slow one.
constexpr int kSpinsAfterWake = 50;
// Nobody rings a rank that has a transport but no event fd (a group without host memory): it looks
// at the abort word this often.
constexpr timespec kBlindSleep = {0, 10'000'000};

// A wait inside a collective goes on when the time has come, and must not turn round and round.
constexpr auto kLookAgain = std::chrono::milliseconds(10);

// Counts this thread among those that a bell's futex wakes, for a scope: what is asked inside may
// throw.
class AsleepOnFutex {
 public:
  explicit AsleepOnFutex(Doorbell* bell) : sleepers_(bell->futex_sleepers) {
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
  }
  ~AsleepOnFutex() { sleepers_.fetch_sub(1, std::memory_order_relaxed); }
  AsleepOnFutex(const AsleepOnFutex&) = delete;
  AsleepOnFutex& operator=(const AsleepOnFutex&) = delete;

 private:
  std::atomic<uint32_t>& sleepers_;
};

// Likewise among those that share a transport.
class AmongSleepers {
 public:
  struct Bell {
    std::atomic<uint64_t>* bits;
    uint64_t bit;
  };
  AmongSleepers(Sleepers* sleepers, const Bell& bell) : sleepers_(*sleepers), bell_(bell) {
    sleepers_.Enter(bell_.bits, bell_.bit);
  }
  ~AmongSleepers() { sleepers_.Leave(bell_.bits, bell_.bit); }
  AmongSleepers(const AmongSleepers&) = delete;
  AmongSleepers& operator=(const AmongSleepers&) = delete;

 private:
  Sleepers& sleepers_;
  const Bell bell_;
};

// The watcher's office, which TryWatch has given.
class Watching {
 public:
  explicit Watching(Sleepers* sleepers) : sleepers_(*sleepers) {}
  ~Watching() { sleepers_.StopWatching(); }
  Watching(const Watching&) = delete;
  Watching& operator=(const Watching&) = delete;

 private:
  Sleepers& sleepers_;
};

// For the system's waits: null, without end.
const timespec* LeftUntil(std::chrono::steady_clock::time_point time, timespec* left) {
  using Clock = std::chrono::steady_clock;
  if (time == Clock::time_point::max()) return nullptr;
  auto rest = std::chrono::duration_cast<std::chrono::nanoseconds>(time - Clock::now());
  if (rest.count() <= 0) rest = kLookAgain;
  *left = {static_cast<time_t>(rest.count() / 1000000000),
           static_cast<long>(rest.count() % 1000000000)};
  return left;
}

}  // namespace

WaitPolicy WaitPolicy::For(int local_size, int host_cores) {
  WaitPolicy policy;
  policy.oversubscribed = local_size > host_cores;
  if (policy.oversubscribed) policy.spins = 2;
  return policy;
}

Waiter::Waiter(HostPage* page, int local_rank, const int* event_fds, WaitPolicy policy)
    : page_(page), local_rank_(local_rank), event_fds_(event_fds), policy_(policy) {}

bool Waiter::HasSleepers() const {
  const Doorbell& bell = page_->bell;
  uint64_t asleep = bell.futex_sleepers.load(std::memory_order_relaxed);
  if (event_fds_ != nullptr) {
    for (const auto& word : bell.fd_sleepers) asleep |= word.load(std::memory_order_relaxed);
  }
  return asleep != 0;
}

void Waiter::Ring() {
  // Pairs with the sleeper, who counts itself before it looks at the condition for the last time:
  // one of the two sees the other. The bell's word therefore need not change while nobody sleeps.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (HasSleepers()) hvd::Ring(&page_->bell, event_fds_, static_cast<int>(page_->local_size));
}

absl::Status Waiter::Check() const {
  if (!IsAborted()) return absl::OkStatus();
  return absl::AbortedError(CauseOf(*page_).text);
}

absl::Status Waiter::UntilSlow(absl::FunctionRef<bool()> done) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point before = Clock::now();
  const int yields = YieldsToComputing() ? 0 : policy_.yields;
  for (int i = 0; i < yields; ++i) {
    if (done()) return absl::OkStatus();
    if (IsAborted()) return Check();
    if (transport_ != nullptr) MoveOn(0);
    sched_yield();
    const Clock::time_point after = Clock::now();
    if (after - before > kLongYield) break;
    before = after;
  }
  while (!done()) {
    if (IsAborted()) return Check();
    AnswerIfAsked();
    if (transport_ == nullptr) {
      SleepOnFutex(done);
    } else {
      SleepOnEvents(done);
    }
    const int spins = policy_.oversubscribed || transport_ != nullptr ? 0 : kSpinsAfterWake;
    for (int i = 0; i < spins && !done(); ++i) Pause();
  }
  return absl::OkStatus();
}

void Waiter::AnswerIfAsked() {
  if (!IsAsked()) return;
  answered_ = page_->question.load(std::memory_order_relaxed);
  on_question_();
}

void Waiter::SleepOnFutex(absl::FunctionRef<bool()> done) {
  Doorbell& bell = page_->bell;
  const AsleepOnFutex asleep(&bell);
  const uint32_t word = bell.word.load(std::memory_order_seq_cst);
  if (!done() && !IsAborted() && !IsAsked()) {
    timespec left;
    syscall(SYS_futex, &bell.word, FUTEX_WAIT, word, LeftUntil(wake_at_, &left), nullptr, 0);
  }
}

absl::Status Waiter::EndEpoch(const std::string& symptom, int unreached) {
  AwaitAbort(kCauseTime);
  AbortEpoch(page_, AbortCause{symptom.c_str(), -1, unreached}, event_fds_);
  const absl::Status ended = Check();
  return ended.ok() ? absl::AbortedError(symptom) : ended;
}

// By futex in any job: an abort rings the futex sleepers too.
void Waiter::AwaitAbort(std::chrono::milliseconds at_most) {
  using Clock = std::chrono::steady_clock;
  Doorbell& bell = page_->bell;
  const Clock::time_point end = Clock::now() + at_most;
  const AsleepOnFutex asleep(&bell);
  while (!IsAborted()) {
    const uint32_t word = bell.word.load(std::memory_order_seq_cst);
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(end - Clock::now());
    if (IsAborted() || left.count() <= 0) break;
    const timespec timeout = {static_cast<time_t>(left.count() / 1000000000),
                              static_cast<long>(left.count() % 1000000000)};
    syscall(SYS_futex, &bell.word, FUTEX_WAIT, word, &timeout, nullptr, 0);
  }
}

bool Waiter::MoveOn(int inside) {
  const bool moved = transport_->Progress();
  if (moved) transport_->sleepers().Wake(inside);
  return (background_ != nullptr && background_->Step()) || moved;
}

void Waiter::SleepOnEvents(absl::FunctionRef<bool()> done) {
  std::atomic<uint64_t>& bell_bits = page_->bell.fd_sleepers[local_rank_ / 64];
  const uint64_t bit = uint64_t{1} << (local_rank_ % 64);
  Sleepers& sleepers = transport_->sleepers();
  const AmongSleepers among(&sleepers, {&bell_bits, bit});
  const uint32_t word = sleepers.word();
  // Arming says nothing about work that is queued inside the transport: first until there is none.
  bool moved = false;
  while (MoveOn(1)) moved = true;
  // When something moved, something may hold now: look again before sleeping.
  if (!moved && transport_->Arm() && !done() && !IsAborted() && !IsAsked()) {
    if (sleepers.TryWatch()) {
      Watch(word);
    } else {
      timespec left;
      sleepers.AwaitWord(word, LeftUntil(wake_at_, &left));
    }
  }
}

// Sleeps for all of this process's threads.
void Waiter::Watch(uint32_t word) {
  Sleepers& sleepers = transport_->sleepers();
  const Watching watching(&sleepers);
  if (sleepers.word() == word) {
    const int bell_fd = event_fds_ == nullptr ? -1 : event_fds_[local_rank_];
    pollfd fds[3] = {
        {bell_fd, POLLIN, 0}, {transport_->EventFd(), POLLIN, 0}, {sleepers.wake_fd(), POLLIN, 0}};
    timespec left = kBlindSleep;
    ppoll(fds, 3, bell_fd < 0 ? &left : LeftUntil(wake_at_, &left), nullptr);
    // Arming may succeed with bytes waiting in a socket: only progress takes them.
    if (fds[1].revents != 0) transport_->Progress();
    if ((fds[0].revents & POLLIN) != 0) {
      uint64_t rings = 0;
      [[maybe_unused]] const ssize_t n = read(bell_fd, &rings, sizeof(rings));
    }
    if ((fds[2].revents & POLLIN) != 0) sleepers.DrainWakeFd();
  }
}

}  // namespace hvd::rt
