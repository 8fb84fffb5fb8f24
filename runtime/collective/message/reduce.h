// SPDX-License-Identifier: Apache-2.0
// A reduction across ranks as the message algorithms see it: one buffer, the kernel, and what
// happens once, with the last sum.
#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/collective/collectives.h"
#include "runtime/collective/kernels/reduce_kernels.h"
#include "runtime/collective/reduction_rules.h"
#include "runtime/collective/wire_scale.h"

namespace hvd::rt {

struct MessageReduce {
  const std::byte* input = nullptr;
  std::byte* output = nullptr;  // == input: in place
  size_t count = 0;             // elements
  size_t width = 0;             // bytes of one
  ReduceKernel kernel = nullptr;
  double prescale = 1.0;   // of each rank's own input, before it is summed
  double postscale = 1.0;  // this and the divisor: with the last sum
  int divisor = 1;

  size_t bytes() const { return count * width; }
};

// Returns the reduction that `args` (a ReduceArgs or ReduceScatterArgs) asks of a group of `size`,
// without its buffers. InvalidArgument: there is no such reduction.
template <class Args>
absl::StatusOr<MessageReduce> ReductionOf(const Args& args, int size) {
  const auto kernel = KernelFor({args.dtype, args.op, args.prescale, args.postscale});
  if (!kernel.ok()) return kernel.status();
  MessageReduce reduce;
  reduce.kernel = *kernel;
  reduce.width = DtypeBytes(args.dtype);
  const double shrink = WireScale(args, size);
  reduce.prescale = args.prescale * shrink;
  reduce.postscale = args.postscale / shrink;
  if (args.op == HVD_AVERAGE) reduce.divisor = DivisorOf(args, size);
  return reduce;
}

enum class SumKind { kPartial, kLast };

// The buffers that are combined, in their order: first `prescaled` sources that have been scaled,
// then ranks' own inputs.
struct Addends {
  absl::Span<const void* const> sources;
  int prescaled = 0;
};

// The last sum is divided and scaled.
inline void Combine(const MessageReduce& reduce, const Addends& addends, void* destination,
                    size_t count, SumKind kind) {
  ReduceTask task;
  task.sources = addends.sources.data();
  task.source_count = static_cast<int>(addends.sources.size());
  task.prescale = reduce.prescale;
  task.prescaled = addends.prescaled;
  task.destinations = &destination;
  task.destination_count = 1;
  task.count = count;
  if (kind == SumKind::kLast) {
    task.divisor = reduce.divisor;
    task.postscale = reduce.postscale;
  }
  if (count > 0) reduce.kernel(task);
}

// Scales the own input, where that is asked for, into the output, which is the input from then on:
// for algorithms in which inputs and sums meet in any order.
void ApplyPrescale(MessageReduce* reduce);

}  // namespace hvd::rt
