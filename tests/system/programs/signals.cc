// SPDX-License-Identifier: Apache-2.0
// signals: takes signals with sigwait, on a thread of its own choice, after hvd has started its
// threads; prints "signals taken" on each rank when none went to another thread.
#include <unistd.h>
#include <csignal>

#include "tests/system/programs/checks.h"

int main() {
  hvd::Session session;
  std::vector<int32_t> all(static_cast<size_t>(hvd::size()) - 1);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int32_t>(i);
  int32_t set = 0;
  Must(hvd_add_process_set(all.data(), hvd::size() - 1, &set), "the set's own thread");
  std::vector<float> sum(100000, 1.0f);
  for (int round = 0; round < 20; ++round) {
    // By then hvd's threads run.
    hvd::allreduce(sum, hvd::Op::kMax, "sum");
    sigset_t mine;
    sigemptyset(&mine);
    for (const int number : {SIGUSR1, SIGTERM}) sigaddset(&mine, number);
    pthread_sigmask(SIG_BLOCK, &mine, nullptr);
    for (const int number : {SIGUSR1, SIGTERM}) {
      kill(getpid(), number);
      int taken = 0;
      if (sigwait(&mine, &taken) != 0 || taken != number) Fail("another signal");
    }
  }
  std::printf("signals taken\n");
  return 0;
}
