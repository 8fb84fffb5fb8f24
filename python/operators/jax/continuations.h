// SPDX-License-Identifier: Apache-2.0
// Goes on with programs whose calls have ended.
//
// At the end of a future XLA runs what waited for it, on the thread that ends it: that computes,
// and may call functions of Python's, which may wait for calls of hvd's. That thread must therefore
// not be libhvd's, which other calls wait for, nor may one program's rest wait for another's: there
// are several threads, made as they are needed. They stay; what nobody waits for costs nothing.
//
// Threads: any.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>

#include "python/operators/jax/xla_ffi.h"

namespace hvd::xla {

// How a future ends.
struct FutureEnd {
  const Api* api = nullptr;
  Future* future = nullptr;
  Error* error = nullptr;  // null: well
};

// On this thread.
void EndFuture(const FutureEnd& end);

class Continuations {
 public:
  // The process's one, as XLA's threads are.
  static Continuations& Get();

  // Ends the future soon, on another thread.
  void Add(const FutureEnd& end);

 private:
  void Body();

  std::mutex mutex_;
  std::condition_variable added_;
  // By the mutex.
  std::deque<FutureEnd> ends_;
  size_t idle_ = 0;
  size_t threads_ = 0;
};

}  // namespace hvd::xla
