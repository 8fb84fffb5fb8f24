// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/local_store.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace hvd::rt {
namespace {

// As the book counts.
double Seconds(TimePoint time) { return SecondsOf(time.time_since_epoch()); }

}  // namespace

class LocalStore::Call : public StoreCall {
 public:
  Call(LocalStore* store, uint64_t number) : store_(store), number_(number) {}
  ~Call() override { store_->GiveUp(number_); }
  absl::StatusOr<bool> Await(std::optional<TimePoint> until) override {
    return store_->Await(number_, until, &answer_);
  }

 private:
  LocalStore* const store_;
  const uint64_t number_;
};

absl::StatusOr<std::unique_ptr<StoreCall>> LocalStore::Begin(const StoreRequest& request) {
  const MutexLock lock(&mutex_);
  const uint64_t call = ++last_call_;
  Give(book_.Ask({0, call}, request, Seconds(Clock::now())));
  return std::make_unique<Call>(this, call);
}

void LocalStore::Give(std::vector<StoreBook::Reply> replies) {
  for (StoreBook::Reply& reply : replies) answers_[reply.to.call] = std::move(reply.answer);
  answered_.NotifyAll();
}

// Whoever waits sees to the times of all.
bool LocalStore::Await(uint64_t call, std::optional<StoreCall::TimePoint> until,
                       StoreAnswer* answer) {
  MutexLock lock(&mutex_);
  while (true) {
    const Clock::time_point now = Clock::now();
    if (Seconds(now) >= book_.deadline()) Give(book_.Tick(Seconds(now)));
    const auto found = answers_.find(call);
    if (found != answers_.end()) {
      *answer = std::move(found->second);
      answers_.erase(found);
      return true;
    }
    if (until.has_value() && now >= *until) return false;
    double left = book_.deadline() - Seconds(now);
    if (until.has_value()) left = std::min(left, Seconds(*until) - Seconds(now));
    constexpr double kLongestS = 3600;
    const std::chrono::duration<double> wait(std::clamp(left, 0.0, kLongestS));
    answered_.WaitUntil(&mutex_, now + std::chrono::ceil<Clock::duration>(wait));
  }
}

void LocalStore::GiveUp(uint64_t call) {
  const MutexLock lock(&mutex_);
  book_.Forget({0, call});
  answers_.erase(call);
}

}  // namespace hvd::rt
