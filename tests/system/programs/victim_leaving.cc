// SPDX-License-Identifier: Apache-2.0
// The modes in which a rank leaves the job: by its exit, a signal, an exception or a shutdown,
// while others wait for it.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <thread>

#include "hvd/hvd.hpp"
#include "tests/system/programs/victim_modes.h"

namespace victim {
namespace {

// exit CODE RANK: one rank ends with CODE while the others wait for it.
int Exit(const Arguments& arguments) {
  Join();
  if (hvd::rank() == Number(arguments, 1, 1)) _exit(Number(arguments, 0, 7));
  while (true) Sum();
}

// segv RANK
int Segv(const Arguments& arguments) {
  Join();
  if (hvd::rank() == Number(arguments, 0, 1)) raise(SIGSEGV);
  while (true) Sum();
}

// term-proof: nothing but KILL ends it; `exit` ends rank 0 with 7 to begin with.
int TermProof(const Arguments& arguments) {
  signal(SIGTERM, SIG_IGN);
  Join();
  if (!arguments.empty() && hvd::rank() == 0) _exit(7);
  while (true) pause();
}

// Makes a call that others may leave alone; returns the rank's exit code.
int Told(const std::function<void()>& call) {
  try {
    call();
  } catch (const hvd::Error& error) {
    std::fprintf(stderr, "rank %d was told: %s\n", hvd::rank(), error.what());
    return 3;
  }
  return 0;
}

// leave: rank 0 shuts down and exits 0 while the others wait for it.
int Leave(const Arguments&) {
  Join();
  if (hvd::rank() == 0) _exit(0);
  return Told(Sum);
}

// throw CODE RANK: one rank leaves by an exception, and ends with CODE when rank 0, which waits for
// it, has ended for that.
int Throw(const Arguments& arguments) {
  pid_t first = 0;
  try {
    hvd::Session session;
    first = hvd::allgather(std::vector<int>{getpid()})[0];
    if (hvd::rank() == Number(arguments, 1, 1)) throw std::out_of_range("out of cheese");
    while (true) Sum();
  } catch (const std::out_of_range& error) {
    AwaitEnd(first);
    std::fprintf(stderr, "%s\n", error.what());
    return Number(arguments, 0, 3);
  }
}

// leave-sets: rank 0 leaves two process sets, whose other members wait for it in none of them.
int LeaveSets(const Arguments&) {
  Join();
  const auto add = [] {
    for (const int other : {1, hvd::size() - 1}) hvd::add_process_set({0, other});
  };
  if (hvd::rank() != 0) {
    return Told([&] {
      add();
      Sum();
    });
  }
  add();
  hvd::shutdown();
  return 0;
}

// Rank 0's own allreduces are over: a join on one thread, told by the others that it works, then a
// shutdown beside it.
void ShutDownInJoin(const sigset_t& told) {
  std::thread joining([] {
    try {
      hvd::join();
    } catch (const hvd::Error& error) {
      Say(error.what());
    }
  });
  int signal = 0;
  sigwait(&told, &signal);
  hvd::shutdown();
  joining.join();
}

// shutdown-in-join: rank 0 shuts down while it has joined and the others sum large tensors.
int ShutdownInJoin(const Arguments&) {
  sigset_t told;
  sigemptyset(&told);
  sigaddset(&told, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &told, nullptr);
  Join();
  const std::vector<int> pids = hvd::allgather(std::vector<int>{getpid()});
  if (hvd::rank() == 0) {
    ShutDownInJoin(told);
    return 0;
  }
  std::vector<float> data(1000000, 1);
  try {
    for (int sums = 0;; ++sums) {
      hvd::allreduce(data, hvd::Op::kAverage, "x");
      if (sums == 2 && hvd::rank() == 1) kill(pids[0], SIGUSR1);
    }
  } catch (const hvd::Error& error) {
    Say(error.what());
  }
  hvd::shutdown();
  return 0;
}

void SayWhen(const std::string& text) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const int64_t ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  Say(text + " at " + std::to_string(ns));
}

// hold RANK: a child of that rank holds its output open. The others say when a call has failed, and
// when they are asked to end.
int Hold(const Arguments& arguments) {
  sigset_t term;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &term, nullptr);
  hvd::init();
  if (hvd::rank() == Number(arguments, 0, 0) && fork() == 0) {
    pthread_sigmask(SIG_UNBLOCK, &term, nullptr);
    while (true) pause();
  }
  Say("joined");
  try {
    while (true) Sum();
  } catch (const hvd::Error& error) {
    SayWhen(std::string("told: ") + error.what());
  }
  int signal = 0;
  sigwait(&term, &signal);
  SayWhen("asked to end");
  _exit(0);
}

}  // namespace

const std::map<std::string, Mode>& LeavingModes() {
  static const std::map<std::string, Mode> modes = {
      {"exit", Exit},
      {"segv", Segv},
      {"term-proof", TermProof},
      {"leave", Leave},
      {"leave-sets", LeaveSets},
      {"throw", Throw},
      {"hold", Hold},
      {"shutdown-in-join", ShutdownInJoin},
  };
  return modes;
}

}  // namespace victim
