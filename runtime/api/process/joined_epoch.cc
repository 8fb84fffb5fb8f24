// SPDX-License-Identifier: Apache-2.0
#include "runtime/api/process/joined_epoch.h"

#include <utility>

#include "runtime/errors/forked.h"

namespace hvd::rt {

std::shared_ptr<Engine> JoinedEpoch::Share(std::unique_ptr<Engine> engine) {
  const MutexLock lock(&mutex_);
  ++engines_;
  return {engine.release(), [this](Engine* ended) {
            delete ended;
            const MutexLock told(&mutex_);
            --engines_;
            engine_ended_.NotifyAll();
          }};
}

void JoinedEpoch::Begin(std::shared_ptr<Engine> engine, const hvd_epoch_t& epoch) {
  const MutexLock lock(&mutex_);
  engine_ = std::move(engine);
  epoch_ = epoch;
}

void JoinedEpoch::End() {
  std::shared_ptr<Engine> left;  // its end takes the lock
  const MutexLock lock(&mutex_);
  left.swap(engine_);
}

void JoinedEpoch::AwaitEnginesEnd() {
  const MutexLock lock(&mutex_);
  while (engines_ > 0) engine_ended_.Wait(&mutex_);
}

std::shared_ptr<Engine> JoinedEpoch::engine() const {
  if (IsForkedChild()) return nullptr;
  const MutexLock lock(&mutex_);
  return engine_;
}

hvd_epoch_t JoinedEpoch::epoch() const {
  const MutexLock lock(&mutex_);
  if (engine_ == nullptr) return hvd_epoch_t(HVD_EPOCH_INIT);
  hvd_epoch_t epoch = epoch_;
  epoch.is_over = engine_->world().page()->aborted.load() != 0 ? 1 : 0;
  return epoch;
}

}  // namespace hvd::rt
