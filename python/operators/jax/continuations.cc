// SPDX-License-Identifier: Apache-2.0
#include "python/operators/jax/continuations.h"

#include <pthread.h>
#include <signal.h>

#include <system_error>
#include <thread>

namespace hvd::xla {
namespace {

// The number of programs that may wait for something in their rest, before others have to wait for
// them.
constexpr size_t kMostThreads = 16;

// The program's signals are for its own threads, but those of this one's faults.
void TakeNoSignals() {
  sigset_t all;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) {
    sigdelset(&all, fault);
  }
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace

void EndFuture(const FutureEnd& end) {
  if (end.error == nullptr) {
    FutureSetAvailableArgs args = {sizeof args, nullptr, end.future};
    (void)end.api->future_set_available(&args);
    return;
  }
  FutureSetErrorArgs args = {sizeof args, nullptr, end.future, end.error};
  (void)end.api->future_set_error(&args);
}

// Never destroyed: its threads may be within a program when the process ends.
Continuations& Continuations::Get() {
  static auto* const one = new Continuations;
  return *one;
}

void Continuations::Add(const FutureEnd& end) {
  std::unique_lock lock(mutex_);
  ends_.push_back(end);
  if (idle_ >= ends_.size() || threads_ == kMostThreads) return added_.notify_one();
  try {
    std::thread([this] { Body(); }).detach();
    ++threads_;
  } catch (const std::system_error&) {  // the machine has no more; those that there are take it
    if (threads_ > 0) return;
    ends_.pop_back();
    lock.unlock();
    EndFuture(end);
  }
}

void Continuations::Body() {
  TakeNoSignals();
  pthread_setname_np(pthread_self(), "hvd-jax");
  std::unique_lock lock(mutex_);
  for (;;) {
    while (ends_.empty()) {
      ++idle_;
      added_.wait(lock);
      --idle_;
    }
    const FutureEnd end = ends_.front();
    ends_.pop_front();
    lock.unlock();
    EndFuture(end);
    lock.lock();
  }
}

}  // namespace hvd::xla
