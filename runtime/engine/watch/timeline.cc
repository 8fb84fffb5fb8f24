// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/watch/timeline.h"

namespace hvd::rt {

static_assert(static_cast<int>(RequestKind::kRemoveProcessSet) ==
              static_cast<int>(TraceActivity::kLastOperation));

void Timeline::Put(TraceActivity activity, const TracedTensor& tensor, int64_t begin_ns,
                   int64_t end_ns) {
  TraceSpan span;
  span.activity = activity;
  span.region = region_;
  span.set = set_;
  span.tensor = tensor.number;
  span.begin_ns = begin_ns;
  span.end_ns = end_ns;
  span.bytes = tensor.bytes;
  if (tensor.number >= told_.size()) told_.resize(tensor.number + 1);
  std::string& told = told_[tensor.number];
  if (told == tensor.name) {
    PutSpan(ring_, span, {});
  } else if (PutSpan(ring_, span, tensor.name)) {
    told = tensor.name;
  }
}

}  // namespace hvd::rt
