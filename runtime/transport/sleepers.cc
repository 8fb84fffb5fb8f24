// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/sleepers.h"

#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace hvd::rt {

Sleepers::Sleepers() : wake_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
Sleepers::~Sleepers() { close(wake_fd_); }

void Sleepers::Enter(std::atomic<uint64_t>* bell_bits, uint64_t bell_bit) {
  const MutexLock lock(&mutex_);
  if (count_.fetch_add(1, std::memory_order_seq_cst) == 0) {
    bell_bits->fetch_or(bell_bit, std::memory_order_seq_cst);
  }
}

void Sleepers::Leave(std::atomic<uint64_t>* bell_bits, uint64_t bell_bit) {
  const MutexLock lock(&mutex_);
  if (count_.fetch_sub(1, std::memory_order_seq_cst) == 1) {
    bell_bits->fetch_and(~bell_bit, std::memory_order_relaxed);
  }
}

bool Sleepers::TryWatch() { return !watched_.exchange(true, std::memory_order_seq_cst); }

void Sleepers::StopWatching() {
  watched_.store(false, std::memory_order_seq_cst);
  word_.fetch_add(1, std::memory_order_seq_cst);
  if (count_.load(std::memory_order_seq_cst) > 1) {
    syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  }
}

void Sleepers::AwaitWord(uint32_t word, const timespec* at_most) {
  syscall(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, word, at_most, nullptr, 0);
}

void Sleepers::WakeAll() {
  word_.fetch_add(1, std::memory_order_seq_cst);
  syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  if (!watched_.load(std::memory_order_seq_cst)) return;  // who starts to watch looks once more
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = write(wake_fd_, &one, sizeof(one));
}

void Sleepers::DrainWakeFd() {
  uint64_t wakes = 0;
  [[maybe_unused]] const ssize_t n = read(wake_fd_, &wakes, sizeof(wakes));
}

}  // namespace hvd::rt
