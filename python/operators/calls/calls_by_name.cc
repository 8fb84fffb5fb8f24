#include "python/operators/calls/calls_by_name.h"

#include <utility>

namespace hvd {

// Never destroyed: a program may be under way when the process ends.
CallsByName& CallsByName::Get() {
  static auto* const one = new CallsByName;
  return *one;
}

void CallsByName::Start(std::unique_ptr<Call> call) {
  const std::string key = call->key();
  std::chrono::microseconds linger{};
  {
    const std::lock_guard lock(mutex_);
    auto& queue = calls_[key];
    queue.push_back(std::move(call));
    if (queue.size() > 1) return;
    if (calls_.size() == 1) linger = queue.front()->linger();
  }
  BeginFirst(key, linger);
}

void CallsByName::BeginFirst(const std::string& key, std::chrono::microseconds linger) {
  for (bool more = true; more; more = EndFirst(key)) {
    Call* first = nullptr;
    {
      const std::lock_guard lock(mutex_);
      first = calls_.at(key).front().get();
    }
    const auto ended = [this, key] {
      if (EndFirst(key)) BeginFirst(key, {});
    };
    if (first->Begin(ended, linger)) return;
  }
}

bool CallsByName::EndFirst(const std::string& key) {
  std::unique_ptr<Call> ended;
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(key);
  ended = std::move(found->second.front());
  found->second.pop_front();
  if (!found->second.empty()) return true;
  calls_.erase(found);
  return false;
}

}  // namespace hvd
