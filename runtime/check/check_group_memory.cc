// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/check/check_tensor.h"
#include "runtime/collective/collectives.h"

namespace hvd::rt {
namespace {

// The memory that a tensor of the group reads, or writes.
struct Span {
  uintptr_t begin, end;
  int tensor;
  bool written;
};

Span SpanOf(const hvd_tensor_t& tensor, int position, bool written) {
  const auto begin = reinterpret_cast<uintptr_t>(tensor.data);
  const size_t element = DtypeBytes(static_cast<hvd_dtype_t>(tensor.dtype));
  return {begin, begin + ElementsOf(tensor) * element, position, written};
}

// Returns the spans of all tensors, empty ones left out. A tensor that is reduced in place has one,
// and so has one of a gather or a scatter in place, which was checked by itself: the larger of the
// two.
std::vector<Span> SpansOf(const GroupCall& call) {
  std::vector<Span> spans;
  spans.reserve(static_cast<size_t>(call.count) * 2);
  const auto add = [&spans](const Span& span) {
    if (span.begin < span.end) spans.push_back(span);
  };
  const bool in_place = call.outputs == nullptr && call.kind == RequestKind::kAllreduce;
  for (int i = 0; i < call.count; ++i) {
    const hvd_tensor_t& input = call.inputs[i];
    const bool same = in_place || (call.outputs != nullptr && call.outputs[i].data == input.data);
    Span read = SpanOf(input, i, same);
    if (call.outputs != nullptr && !same) {
      const Span written = SpanOf(call.outputs[i], i, true);
      const bool apart = read.end <= written.begin || written.end <= read.begin;
      if (apart) {
        add(written);
      } else {
        read = {std::min(read.begin, written.begin), std::max(read.end, written.end), i, true};
      }
    }
    add(read);
  }
  return spans;
}

absl::Status Overlap(const Span& a, const Span& b) {
  const Span& output = a.written ? a : b;
  const Span& other = a.written ? b : a;
  const std::string first = std::to_string(output.tensor), second = std::to_string(other.tensor);
  return absl::InvalidArgumentError(
      (other.written ? "the outputs of tensors " + first + " and " + second
                     : "the output of tensor " + first + " and the input of tensor " + second) +
      " of the group overlap; give each output memory of its own");
}

}  // namespace

// In the order of their beginnings each is compared with the one before it that reaches farthest: a
// written one with all, a read one with those that are written.
absl::Status CheckGroupMemory(const GroupCall& call) {
  if (call.count < 2) return absl::OkStatus();
  std::vector<Span> spans = SpansOf(call);
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.tensor < b.tensor;
  });
  const Span* farthest = nullptr;
  const Span* farthest_written = nullptr;
  for (const Span& span : spans) {
    const Span* before = span.written ? farthest : farthest_written;
    if (before != nullptr && before->end > span.begin) return Overlap(*before, span);
    if (farthest == nullptr || span.end > farthest->end) farthest = &span;
    if (!span.written) continue;
    if (farthest_written == nullptr || span.end > farthest_written->end) farthest_written = &span;
  }
  return absl::OkStatus();
}

}  // namespace hvd::rt
