// SPDX-License-Identifier: Apache-2.0
#include "python/operators/calls/calls_by_name.h"

#include <algorithm>
#include <utility>

namespace hvd {

// Never destroyed: a program may be under way when the process ends.
CallsByName& CallsByName::Get() {
  static auto* const one = new CallsByName;
  return *one;
}

void CallsByName::Start(std::unique_ptr<Call> call) {
  const std::string key = call->key();
  Fill(TakeTurn(key), std::move(call));
}

CallsByName::Turn CallsByName::TakeTurn(const std::string& key) {
  const std::lock_guard lock(mutex_);
  Calls& calls = calls_[key];
  return {key, calls.insert(calls.end(), nullptr)};
}

void CallsByName::Fill(const Turn& turn, std::unique_ptr<Call> call) {
  std::chrono::microseconds linger{};
  {
    const std::lock_guard lock(mutex_);
    *turn.call = std::move(call);
    if (calls_.at(turn.key).begin() != turn.call) return;
    if (calls_.size() == 1) linger = (*turn.call)->linger();
  }
  BeginFirst(turn.key, linger);
}

void CallsByName::Leave(const Turn& turn) {
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = calls_.at(turn.key).begin() == turn.call;
    if (!Remove(turn.key, turn.call)) return;
  }
  if (first) BeginFirst(turn.key, {});
}

bool CallsByName::AllHaveBegun() {
  const std::lock_guard lock(mutex_);
  return std::all_of(calls_.begin(), calls_.end(), [](const auto& each) {
    return each.second.size() == 1 && each.second.front() != nullptr;
  });
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
  const auto first = calls_.at(key).begin();
  ended = std::move(*first);
  return Remove(key, first);
}

bool CallsByName::Remove(const std::string& key, Calls::iterator call) {
  const auto found = calls_.find(key);
  found->second.erase(call);
  if (!found->second.empty()) return found->second.front() != nullptr;
  calls_.erase(found);
  return false;
}

}  // namespace hvd
