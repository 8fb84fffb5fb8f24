// The engine thread: it executes what nobody waits for.
#include <chrono>
#include <utility>

#include "runtime/engine/engine.h"
#include "runtime/engine/engine_role.h"
#include "runtime/transport/short_slices.h"

namespace hvd {
namespace {

// What is worth a core at once.
constexpr size_t kSmallBatch = size_t{64} << 10;
// Each is twice as long as the one before; the first is HVD_BATCH_WAIT_US.
constexpr int kMostWindows = 2;

}  // namespace

bool Engine::MustListen() const { return world_->leader() != nullptr && !stopping_; }

// While small ones are submitted one after the other, this thread leaves the core to whoever
// submits them: it would take it away again and again, for a little work each time.
bool Engine::MoreComesLocked(Coming* coming) {
  const uint64_t fresh = submissions_ - std::exchange(coming->seen, submissions_);
  const bool more = coming->windows == 0 ? pending_.load(std::memory_order_relaxed) > 1 : fresh > 0;
  const bool urgent = MustListen() || pairs_.active() || world_->board().open_bytes() > kSmallBatch;
  if (!more || urgent || coming->windows == kMostWindows) {
    coming->windows = 0;
    return false;
  }
  timer_.Arm(std::chrono::microseconds(batch_wait_us_.load(std::memory_order_relaxed)
                                       << ++coming->windows));
  return true;
}

void Engine::ThreadBody() {
  (void)AskForShortSlices();  // it answers peers, beside a thread that computes
  Coming coming;
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopping_) {
    const bool work = pending_.load() > 0 || (MustListen() && broken_.ok());
    if (executing_ || waiting_.load() > 0 || !work || MoreComesLocked(&coming)) {
      lock.unlock();
      timer_.Wait();
      lock.lock();
      continue;
    }
    {
      const Role role(this, &lock);
      world_->waiter().set_beside(true);
      ExecuteUntil([this] {
        return waiting_.load(std::memory_order_relaxed) > 0 ||
               (pending_.load(std::memory_order_relaxed) == 0 && world_->leader() == nullptr);
      });
      world_->waiter().set_beside(false);
    }
    changed_.notify_all();
  }
}

}  // namespace hvd
