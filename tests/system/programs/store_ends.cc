// SPDX-License-Identifier: Apache-2.0
// What ends a call to the store, and who may not make one.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "tests/system/programs/store.h"

namespace {

std::atomic<int> heard{0};
void Hear(int) { ++heard; }

// TERM is what a stopping job sends; here it must not come before the error.
void OutliveTerm() {
  struct sigaction action = {};
  action.sa_handler = Hear;
  sigaction(SIGTERM, &action, nullptr);
}

// The last rank dies while all others wait for a key that it never sets.
void DieOrWait() {
  OutliveTerm();
  if (Rank() == Size() - 1) {
    for (int other = 0; other < Size() - 1; ++other) {
      hvd::store::get("waits." + std::to_string(other), kLong);
    }
    kill(getpid(), SIGKILL);
  }
  hvd::store::set("waits." + std::to_string(Rank()), "");
  const std::string dead = "rank " + std::to_string(Size() - 1) + " on ";
  MustFail(
      HVD_ERR_ABORTED, [] { hvd::store::get("never", hvd::store::kForever); }, dead);
  std::fprintf(stderr, "rank %d was told: %s\n", Rank(), hvd_last_error());
  std::exit(3);
}

}  // namespace

void Victim() { DieOrWait(); }

void VictimJoined() {
  hvd::init();
  DieOrWait();
}

// A child of a fork shares its parent's connections, so it has no say; a new program has.
void Fork() {
  hvd::store::set("parent." + std::to_string(Rank()), "");
  hvd_store_call_t* waits = nullptr;
  const std::string ends = "ends." + std::to_string(Rank());
  hvd_store_begin_get(ends.c_str(), 100, &waits);
  const pid_t child = fork();
  if (child == 0) {
    hvd_store_call_t* call = nullptr;
    const bool refused = hvd_store_set("child", "", 0) == HVD_ERR_NOT_INITIALIZED &&
                         hvd_store_end(waits, nullptr) == HVD_ERR_NOT_INITIALIZED &&
                         hvd_store_begin_get("child", 0, &call) == HVD_ERR_NOT_INITIALIZED &&
                         std::string(hvd_last_error()).find("forked") != std::string::npos;
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  Check(status == 0, "the child of a fork is refused, and told why");
  hvd::store::set(ends, "");
  int32_t done = 0;
  Check(hvd_store_wait_for(waits, 100'000'000, &done) == HVD_OK && done == 1, "a call lives on");
  Check(hvd_store_end(waits, nullptr) == HVD_OK, "and ends well, whatever the child has done");
  Meet("forks");
  MustFail(
      HVD_ERR_TIMEOUT, [] { hvd::store::get("child", kNow); }, "nobody has set");
}

// A handler runs while a call waits, and the call waits on.
void Signal() {
  struct sigaction action = {};
  action.sa_handler = Hear;  // without SA_RESTART
  sigaction(SIGUSR1, &action, nullptr);
  const pthread_t waits = pthread_self();
  std::thread sends([waits] {
    for (int sent = 0; heard < 20; ++sent) {
      pthread_kill(waits, SIGUSR1);
      std::this_thread::yield();
    }
    hvd::store::set("signalled." + std::to_string(Rank()), "at last");
  });
  const std::string value = hvd::store::get("signalled." + std::to_string(Rank()), kLong);
  sends.join();
  Check(value == "at last" && heard >= 20, "the wait outlives signals");
}
