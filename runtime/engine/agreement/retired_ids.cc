// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/agreement/retired_ids.h"

#include <algorithm>

namespace hvd::rt {

// The next ones only once all hosts have forgotten these: then no report can name them any more. A
// tensor that is pending somewhere keeps its id; when hardly any is idle, the next look waits for
// as many decisions as make up for it.
std::vector<uint64_t> RetiredIds::Pick(size_t most, uint64_t decided) {
  std::vector<uint64_t> picked;
  if (tensors_.ids() <= most || !retiring_.empty() || decided < look_at_) return picked;
  std::vector<LeaderTensor*> idle;
  tensors_.ForEach([&idle](LeaderTensor* tensor) {
    if (tensor->id != 0 && !tensor->in_use()) idle.push_back(tensor);
  });
  const size_t wanted = most / 4 + 1;
  const size_t count = std::min(idle.size(), wanted);
  if (count < wanted) look_at_ = decided + wanted;
  std::partial_sort(idle.begin(), idle.begin() + static_cast<ptrdiff_t>(count), idle.end(),
                    [](const LeaderTensor* a, const LeaderTensor* b) {
                      return a->used != b->used ? a->used < b->used : a->id < b->id;
                    });
  for (size_t i = 0; i < count; ++i) picked.push_back(idle[i]->id);
  return picked;
}

// Reports that are on the way from below may still use these ids; this host's own do not any more.
bool RetiredIds::Retire(const std::vector<uint64_t>& ids) {
  for (const uint64_t id : ids) {
    if (LeaderTensor* tensor = tensors_.FindId(id)) tensor->retired = true;
  }
  retiring_ = ids;
  waiting_for_ = children_;
  if (children_ > 0) return false;
  Forget();
  return true;
}

bool RetiredIds::OnChildRetired() {
  if (--waiting_for_ != 0) return false;
  Forget();
  return true;
}

void RetiredIds::Forget() {
  for (const uint64_t id : retiring_) tensors_.DropId(id);
  retiring_.clear();
}

}  // namespace hvd::rt
