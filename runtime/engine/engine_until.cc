// Waits with an end, for callers that have other things to look at as well.
#include <chrono>

#include "runtime/engine/engine.h"
#include "runtime/engine/engine_role.h"

namespace hvd {

bool Engine::WaitUntil(Request* request, Clock::time_point end) {
  NoteCallers(waiting_.fetch_add(1) + 1);
  std::unique_lock<std::mutex> lock(mutex_);
  return WaitUntilLocked(request, end, &lock);
}

// The clock is looked at where the thread would sleep, and in between. REQUIRES: this thread is
// counted in waiting_.
bool Engine::WaitUntilLocked(Request* request, Clock::time_point end,
                             std::unique_lock<std::mutex>* lock) {
  const auto done = [request] { return request->done.load(std::memory_order_acquire); };
  const auto over = [&] { return done() || Clock::now() >= end; };
  while (!over()) {
    if (executing_) {
      changed_.wait_until(*lock, end);
      continue;
    }
    const Role role(this, lock);
    world_->waiter().set_wake_at(end);
    ExecuteUntil(over);
    world_->waiter().set_wake_at(Clock::time_point::max());
  }
  HandOver(lock);
  return done();
}

absl::Status Engine::RunUntil(Request* request, Clock::time_point end, bool* done) {
  std::unique_lock<std::mutex> lock(mutex_);
  *done = true;
  request->alone = pending_.load(std::memory_order_relaxed) == 0;
  if (absl::Status status = SubmitLocked(request, true); !status.ok()) return status;
  waiting_.fetch_add(1, std::memory_order_relaxed);
  if (executing_) {
    // So that an executor of ours which sleeps gives the role up.
    lock.unlock();
    world_->waiter().Ring();
    lock.lock();
  } else if (BeginRunLocked(request, &lock)) {
    HandOver(&lock);
    return request->status;
  } else {
    world_->waiter().Ring();
  }
  *done = WaitUntilLocked(request, end, &lock);
  return *done ? request->status : absl::OkStatus();
}

}  // namespace hvd
