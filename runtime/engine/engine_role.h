// The executor's role, taken for a scope. Whoever leaves it then offers it on (Engine::OfferRole).
#pragma once

#include <mutex>

#include "runtime/engine/engine.h"

namespace hvd {

class Engine::Role {
 public:
  // REQUIRES: `lock` is held, and nobody has the role. Unlocks. `runner`: the request of this
  // thread's Run, with whose completion the role may end (Request::ended_role).
  Role(Engine* engine, std::unique_lock<std::mutex>* lock, Request* runner = nullptr)
      : engine_(*engine), lock_(*lock), runner_(runner) {
    engine_.executing_ = true;
    engine_.runner_ = runner;
    lock_.unlock();
  }
  // Locks, unless it has ended with the runner.
  ~Role() {
    if (runner_ != nullptr && runner_->ended_role) return;
    lock_.lock();
    engine_.executing_ = false;
    engine_.runner_ = nullptr;
  }
  Role(const Role&) = delete;
  Role& operator=(const Role&) = delete;

 private:
  Engine& engine_;
  std::unique_lock<std::mutex>& lock_;
  Request* const runner_;
};

}  // namespace hvd
