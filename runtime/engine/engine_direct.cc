// The executor's work on requests that go directly. Nothing here waits.
#include <algorithm>

#include "runtime/engine/direct/direct_execute.h"
#include "runtime/engine/engine.h"

namespace hvd {
namespace {

// About half a microsecond.
constexpr int kLooksAtOnce = 200;

}  // namespace

Direct::Seen Engine::LookAt(const LocalName& name) const {
  const Direct& direct = *world_->direct();
  if (!name.worked) return direct.Look(name.ticket, name.word);
  return direct.AllDone(name.ticket) ? Direct::Seen::kAllSame : Direct::Seen::kNotYet;
}

bool Engine::DirectIsReady() const {
  if (marked_count_.load(std::memory_order_acquire) != 0) return true;
  for (const LocalName* name : watched_) {
    if (LookAt(*name) != Direct::Seen::kNotYet) return true;
  }
  return false;
}

void Engine::WatchMarkedLocked() {
  watched_.insert(watched_.end(), marked_.begin(), marked_.end());
  marked_.clear();
  marked_count_.store(0, std::memory_order_relaxed);
}

bool Engine::StepDirect() {
  if (marked_count_.load(std::memory_order_acquire) != 0) {
    std::lock_guard<std::mutex> lock(mutex_);
    WatchMarkedLocked();
  }
  for (size_t i = 0; i < watched_.size(); ++i) {
    LocalName* name = watched_[i];
    const Direct::Seen seen = LookAt(*name);
    if (seen == Direct::Seen::kNotYet) continue;
    const bool all_same = seen == Direct::Seen::kAllSame;
    if (all_same && name->in_place && !name->worked) {
      WorkInPlace(name);
      return true;
    }
    watched_.erase(watched_.begin() + static_cast<ptrdiff_t>(i));
    if (!all_same) {
      FallBack(name);
    } else if (name->in_place) {
      FinishInPlace(name);
    } else {
      FinishDirect(name);
    }
    return true;
  }
  return false;
}

void Engine::ExecuteDirectly(LocalName* name) {
  Request* request = name->pending;
  const int64_t begin_ns = timeline_.Stamp();
  request->status = ExecuteDirect(*world_->direct(), name->ticket, request);
  world_->direct()->OwnNext(name->ticket, name->word);
  NoteDirect(*request, begin_ns);
}

void Engine::FinishDirect(LocalName* name) {
  Request* request = name->pending;
  ExecuteDirectly(name);
  Complete({&request, 1}, true);
}

// A small request of a thread that waits for it and for nothing else, in an engine that has nothing
// else to do.
bool Engine::MayEndAtOnceLocked(const Request& request) const {
  return request.alone && marked_.size() == 1 && !marked_.front()->in_place && watched_.empty() &&
         deferred_.empty();
}

// When the others come within a few looks: what is left of the call takes less than to leave the
// lock, take the role and come back.
bool Engine::EndAtOnceLocked(Request* request) {
  LocalName* name = marked_.front();
  int looks = std::min(kLooksAtOnce, world_->waiter().policy().spins);
  Direct::Seen seen = LookAt(*name);
  for (; seen == Direct::Seen::kNotYet && looks > 0; --looks) {
    waited_ = true;
    seen = LookAt(*name);
  }
  if (seen != Direct::Seen::kAllSame) return false;
  marked_.clear();
  marked_count_.store(0, std::memory_order_relaxed);
  ExecuteDirectly(name);
  CompleteLocked(request);
  return true;
}

// Not all ranks can go directly: this one asks the board like them, where there is room
// (PrepareLocked). Should it be refused all the same, the others would wait for it.
void Engine::FallBack(LocalName* name) {
  absl::Status marked;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    name->direct = false;
    marked = MarkOnBoard(name);
  }
  world_->waiter().Ring();
  if (marked.ok()) return;
  (void)BreakIfBroken(absl::IsAborted(marked) ? marked : absl::InternalError(marked.message()));
}

}  // namespace hvd
