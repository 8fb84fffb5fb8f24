// SPDX-License-Identifier: Apache-2.0
// A reduction in two halves: what the ranks of a host do, and what is left for after.
#pragma once

#include "runtime/collective/message/reduce.h"
#include "runtime/collective/wire_scale.h"

namespace hvd::rt {

// The host's half: what comes with the last sum is left for later, but for what makes the host's
// sum fit the wire. `Args`: ReduceArgs or ReduceScatterArgs, of a group of `size`.
template <class Args>
Args WithinHost(Args args, int size) {
  args.postscale = WireScale(args, size);
  if (args.op == HVD_AVERAGE) args.op = HVD_SUM;
  args.divisor = 0;
  return args;
}

// The half that is left: no prescale, and the average is over the whole group.
template <class Args>
absl::StatusOr<MessageReduce> AcrossHosts(Args args, int size) {
  args.prescale = 1.0;
  args.postscale /= WireScale(args, size);
  return ReductionOf(args, size);
}

}  // namespace hvd::rt
