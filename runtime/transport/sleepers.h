// SPDX-License-Identifier: Apache-2.0
// The threads of one process that share a transport, while they sleep: an engine thread a process
// set. One of them, the watcher, polls the descriptors for all; the others wait for its word.
//
// Any thread may progress the transport and so complete what another waits for: whoever moved
// something tells those asleep (Wake). Nobody sleeps on a word that was said before it looked at
// its condition.
#pragma once

#include <time.h>

#include <atomic>
#include <cstdint>

#include "base/mutex.h"

namespace hvd::rt {

class Sleepers {
 public:
  Sleepers();
  ~Sleepers();
  Sleepers(const Sleepers&) = delete;
  Sleepers& operator=(const Sleepers&) = delete;

  // A thread counts itself (Enter) before it looks at its condition for the last time, and leaves
  // when it goes on. `bell_bits` has `bell_bit` set while there is anybody inside: it is how the
  // host's other ranks know that they must ring.
  void Enter(std::atomic<uint64_t>* bell_bits, uint64_t bell_bit);
  void Leave(std::atomic<uint64_t>* bell_bits, uint64_t bell_bit);

  // Returns the count of words said so far; read it before looking at the condition.
  uint32_t word() const { return word_.load(std::memory_order_seq_cst); }
  // True: the caller is the watcher until StopWatching, and polls wake_fd() beside the rest.
  bool TryWatch();
  // Also wakes the others, to look and to find the next watcher.
  void StopWatching();
  // Sleeps until something is said after `word`, or for `at_most` (null: no limit). REQUIRES: the
  // caller has entered.
  void AwaitWord(uint32_t word, const timespec* at_most = nullptr);

  // Something moved that a sleeper may wait for. `inside`: how many of those entered are the
  // caller itself. Costs a look while nobody else sleeps.
  void Wake(int inside) {
    if (count_.load(std::memory_order_seq_cst) > inside) WakeAll();
  }
  int wake_fd() const { return wake_fd_; }
  void DrainWakeFd();

 private:
  void WakeAll();

  Mutex mutex_;  // of Enter and Leave: the count and the bell's bit change together
  std::atomic<int> count_{0};
  std::atomic<bool> watched_{false};
  std::atomic<uint32_t> word_{0};  // grows; a futex, and may wrap as the Doorbell's does
  const int wake_fd_;
};

}  // namespace hvd::rt
