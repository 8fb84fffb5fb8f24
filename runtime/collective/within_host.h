// A reduction in two halves: what the ranks of a host do, and what is left for after.
#pragma once

#include "runtime/collective/message_reduce.h"

namespace hvd {

// The host's half: what comes with the last sum is left for later. `Args`: ReduceArgs or
// ReduceScatterArgs.
template <class Args>
Args WithinHost(Args args) {
  if (args.op == HVD_AVERAGE) args.op = HVD_SUM;
  args.postscale = 1.0;
  args.divisor = 0;
  return args;
}

// The half that is left: no prescale, and the average is over the whole group.
template <class Args>
absl::StatusOr<MessageReduce> AcrossHosts(Args args, int size) {
  args.prescale = 1.0;
  return ReductionOf(args, size);
}

}  // namespace hvd
