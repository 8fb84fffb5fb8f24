// A reduction across ranks as the message algorithms see it: one buffer, the kernel, and what
// happens once, with the last sum.
#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/collective/collectives.h"
#include "runtime/collective/kernels/reduce_kernels.h"

namespace hvd {

struct MessageReduce {
  const std::byte* input = nullptr;
  std::byte* output = nullptr;  // == input: in place
  size_t count = 0;             // elements
  size_t width = 0;             // bytes of one
  ReduceKernel kernel = nullptr;
  // With the last sum. `prescale` is for each rank's own input, before anything is summed.
  double prescale = 1.0;
  double postscale = 1.0;
  int divisor = 1;

  size_t bytes() const { return count * width; }
};

// What `args` (a ReduceArgs or ReduceScatterArgs) asks of a group of `size`, without its buffers.
// InvalidArgument: there is no such reduction.
template <class Args>
absl::StatusOr<MessageReduce> ReductionOf(const Args& args, int size) {
  MessageReduce reduce;
  reduce.kernel = FindReduceKernel(args.dtype, args.op, BestKernelLevel());
  if (reduce.kernel == nullptr) {
    return absl::InvalidArgumentError("bool has no average; use MIN or MAX");
  }
  if (args.dtype == HVD_BOOL && (args.prescale != 1.0 || args.postscale != 1.0)) {
    return absl::InvalidArgumentError("bool cannot be scaled; leave prescale and postscale at 1");
  }
  reduce.width = DtypeBytes(args.dtype);
  reduce.prescale = args.prescale;
  reduce.postscale = args.postscale;
  if (args.op == HVD_AVERAGE) reduce.divisor = args.divisor != 0 ? args.divisor : size;
  return reduce;
}

enum class SumKind { kPartial, kLast };

// Combines in the sources' order; the last sum is divided and scaled.
inline void Combine(const MessageReduce& reduce, absl::Span<const void* const> sources,
                    void* destination, size_t count, SumKind kind) {
  ReduceTask task;
  task.sources = sources.data();
  task.source_count = static_cast<int>(sources.size());
  task.destinations = &destination;
  task.destination_count = 1;
  task.count = count;
  if (kind == SumKind::kLast) {
    task.divisor = reduce.divisor;
    task.postscale = reduce.postscale;
  }
  if (count > 0) reduce.kernel(task);
}

// Scales the own input, where that is asked for, into the output, which is the input from then on.
void ApplyPrescale(MessageReduce* reduce);

}  // namespace hvd
