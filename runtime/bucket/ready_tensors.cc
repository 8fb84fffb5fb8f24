// SPDX-License-Identifier: Apache-2.0
#include "runtime/bucket/ready_tensors.h"

#include <algorithm>

namespace hvd::rt {
namespace {

constexpr int kNamedMissing = 8;  // at most in one message

}  // namespace

void ReadyTensors::Clear() {
  ready_.assign(plan_.views.size(), false);
  missing_.clear();
  for (const BucketChunk& chunk : plan_.chunks) missing_.push_back(chunk.tensors);
}

bool ReadyTensors::empty() const {
  return std::find(ready_.begin(), ready_.end(), true) == ready_.end();
}

void ReadyTensors::Add(size_t tensor) {
  --missing_[plan_.views[tensor].chunk];
  ready_[tensor] = true;
}

std::string ReadyTensors::Missing(size_t begin, size_t end) const {
  std::string text;
  int missing = 0;
  for (size_t i = begin; i < end; ++i) {
    if (ready_[i]) continue;
    if (++missing <= kNamedMissing) text += (missing > 1 ? ", " : "") + std::to_string(i);
  }
  if (missing > kNamedMissing) text += " and " + std::to_string(missing - kNamedMissing) + " more";
  return text;
}

}  // namespace hvd::rt
