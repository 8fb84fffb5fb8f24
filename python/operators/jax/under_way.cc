// SPDX-License-Identifier: Apache-2.0
#include "python/operators/jax/under_way.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>
#include <string_view>

#include "python/operators/calls/calls_by_name.h"

namespace hvd::xla {
namespace {

// A call of another kind than the one that it refuses.
class Refusal : public Call {
 public:
  explicit Refusal(const std::string& key) {
    const size_t colon = key.find(':');
    request().options.process_set = std::atoi(key.c_str());
    request().name = key.substr(colon + 1);
    const bool gathers = request().name.find("allgather.") < request().name.find('.');
    request().kind = gathers ? CallKind::kAllreduce : CallKind::kAllgather;
    hvd_tensor_t tensor = HVD_TENSOR_INIT;
    tensor.data = &byte_;
    tensor.shape = &rows_;
    tensor.ndim = 1;
    tensor.dtype = HVD_UINT8;
    request().inputs.push_back(tensor);
    if (gathers) request().outputs.push_back(tensor);
  }

 protected:
  void End(hvd_handle_t, hvd_status_t) override { UnderWay::Get().RefusalEnds(key()); }

 private:
  uint8_t byte_ = 0;
  const int64_t rows_ = 1;
};

void Append(const std::string& key, std::string* keys) {
  if (!keys->empty()) keys->push_back(kBetweenKeys);
  keys->append(key);
}

}  // namespace

// Never destroyed: a program may be under way when the process ends.
UnderWay& UnderWay::Get() {
  static auto* const one = new UnderWay;
  return *one;
}

void UnderWay::Begin(int64_t run, std::string keys) {
  const std::lock_guard lock(mutex_);
  ++changes_;
  runs_.emplace_front(run, std::move(keys));
  if (runs_.size() > kMostRuns) runs_.pop_back();
}

void UnderWay::Add(const void* call, std::string key, int64_t run) {
  const std::lock_guard lock(mutex_);
  ++changes_;
  calls_[call] = {std::move(key), run};
}

void UnderWay::Remove(const void* call) {
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(call);
  if (found == calls_.end()) return;
  ++changes_;
  const std::string key = std::move(found->second.key);
  calls_.erase(found);
  if (!judged_.empty() && !Has(key)) judged_.erase(key);
}

UnderWay::View UnderWay::Look() {
  View view;
  std::set<int64_t> runs;
  std::set<std::string_view> programs;
  const std::lock_guard lock(mutex_);
  view.changes = changes_;
  for (const auto& each : calls_) {
    Append(each.second.key, &view.keys);
    const int64_t run = each.second.run;
    if (!runs.insert(run).second) continue;
    const auto found =
        std::find_if(runs_.begin(), runs_.end(), [&](const auto& one) { return one.first == run; });
    if (found == runs_.end() || !programs.insert(found->second).second) continue;
    Append(found->second, &view.programs);
  }
  return view;
}

void UnderWay::Judge(const std::vector<std::string>& keys, const std::string& text) {
  const std::lock_guard lock(mutex_);
  for (const std::string& key : keys) judged_[key] = text;
  holds_ = true;
}

void UnderWay::End(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    {
      const std::lock_guard lock(mutex_);
      if (Has(key)) continue;
      ++refused_[key];
    }
    CallsByName::Get().Start(std::make_unique<Refusal>(key));
  }
  LetEnd();
}

void UnderWay::Acquit(const std::vector<std::string>& keys) {
  {
    const std::lock_guard lock(mutex_);
    for (const std::string& key : keys) judged_.erase(key);
  }
  LetEnd();
}

void UnderWay::LetEnd() {
  std::vector<FutureEnd> ends;
  {
    const std::lock_guard lock(mutex_);
    holds_ = false;
    ends.swap(held_);
  }
  for (const FutureEnd& end : ends) Continuations::Get().Add(end);
}

bool UnderWay::Hold(const FutureEnd& end) {
  const std::lock_guard lock(mutex_);
  if (holds_) held_.push_back(end);
  return holds_;
}

std::string UnderWay::Judgement(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = judged_.find(key);
  return found == judged_.end() ? std::string() : found->second;
}

void UnderWay::RefusalEnds(const std::string& key) {
  const std::lock_guard lock(mutex_);
  if (--refused_[key] > 0) return;
  refused_.erase(key);
  judged_.erase(key);
}

bool UnderWay::IsRefused(const std::string& key) {
  const std::lock_guard lock(mutex_);
  return !refused_.empty() && refused_.count(key) > 0;
}

bool UnderWay::Has(const std::string& key) const {
  return std::any_of(calls_.begin(), calls_.end(),
                     [&](const auto& each) { return each.second.key == key; });
}

}  // namespace hvd::xla
