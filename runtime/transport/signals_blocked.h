// SPDX-License-Identifier: Apache-2.0
// Around the start of a thread of hvd's, which inherits the mask: the program's signals are for its
// own threads.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace hvd::rt {

// The calling thread takes no signals meanwhile, but those of its own faults, which the program may
// report.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) {
      sigdelset(&all, fault);
    }
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace hvd::rt
