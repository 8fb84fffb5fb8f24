// SPDX-License-Identifier: Apache-2.0
// The collectives of a fixed group of ranks, on plain buffers. Implementations: one host through
// shared memory (host_collectives), several ranks over a message transport (message_collectives),
// and the two together (hierarchical_collectives). One suite (tests/runtime/collective) runs on all
// of them.
//
// Threads: one caller at a time (the engine's executor); it may be a different thread each call.
// Every member must make the same calls in the same order with the same sizes, types, ops and
// roots: the engine's agreement sees to that. A call blocks until this rank's part is done and its
// buffers may be reused. It returns Aborted with the epoch's cause when the epoch ends; after that
// every call returns the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "hvd/hvd.h"

namespace hvd::rt {

// Whether a call was refused, for its arguments: all ranks refuse it alike, before anything has
// moved, and go on. Any other error means that the ranks have lost one another.
inline bool IsRefusal(const absl::Status& status) { return absl::IsInvalidArgument(status); }

// One tensor of a reduction.
struct ReducePart {
  const void* input = nullptr;
  void* output = nullptr;  // == input: in place; else no overlap
  size_t count = 0;        // elements
  // Where the host's ranks have this tensor, as this process sees their memory, by index among the
  // host's members; empty unless all of them have it in shared memory. Then ranks read and write
  // one another's buffers directly, from the first one's call on: all have handed theirs over by
  // then. (The engine agrees on a tensor when all have submitted it.)
  absl::Span<const void* const> host_inputs;
  absl::Span<void* const> host_outputs;
};

struct ReduceArgs {
  const void* input = nullptr;
  void* output = nullptr;  // == input: in place; else no overlap
  size_t count = 0;        // elements
  hvd_dtype_t dtype = HVD_FLOAT32;
  hvd_op_t op =
      HVD_SUM;  // AVERAGE divides the sum by the group's size (integers truncate towards zero)
  // result = postscale * op(prescale * each); integers are scaled in double and truncated. Sums of
  // floats may apply both at once.
  double prescale = 1.0;
  double postscale = 1.0;
  int divisor = 0;  // for AVERAGE, instead of the group's size; 0: the group's size
  // Several tensors fused: reduced as if they lay one after the other. input, output and
  // count are not used then. As many on all ranks, for the way may depend on that; where one ends
  // and the next begins may differ.
  absl::Span<const ReducePart> parts = {};
};

// Rank r gets the reduction of its elements: count_by_rank says how the input is divided.
struct ReduceScatterArgs {
  const void* input = nullptr;
  void* output = nullptr;                  // no overlap with input
  absl::Span<const size_t> count_by_rank;  // size() entries; zero is allowed
  hvd_dtype_t dtype = HVD_FLOAT32;
  hvd_op_t op = HVD_SUM;
  double prescale = 1.0;
  double postscale = 1.0;
  int divisor = 0;
};

struct GatherArgs {
  const void* input = nullptr;
  void* output = nullptr;  // the ranks' parts one after the other; may contain input at its place
  absl::Span<const size_t> bytes_by_rank;  // size() entries; zero is allowed
};

// The bytes that this rank sends to each rank lie in `input` by rank; those that it gets, in
// `output` by rank.
struct AlltoallArgs {
  const void* input = nullptr;
  void* output = nullptr;                  // no overlap with input
  absl::Span<const size_t> send_bytes;     // size() entries; zero is allowed
  absl::Span<const size_t> receive_bytes;  // what each rank sends to this one
};

struct BroadcastArgs {
  const void* input = nullptr;  // read on the root only
  void* output = nullptr;       // == input on the root: nothing is copied there
  size_t bytes = 0;
  int root = 0;  // index in this group
};

class Collectives {
 public:
  virtual ~Collectives() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual absl::Status Allreduce(const ReduceArgs& args) = 0;
  virtual absl::Status ReduceScatter(const ReduceScatterArgs& args) = 0;
  virtual absl::Status Allgather(const GatherArgs& args) = 0;
  virtual absl::Status Alltoall(const AlltoallArgs& args) = 0;
  virtual absl::Status Broadcast(const BroadcastArgs& args) = 0;
  virtual absl::Status Barrier() = 0;
};

// 0 for what is none.
inline size_t DtypeBytes(hvd_dtype_t dtype) {
  switch (dtype) {
    case HVD_UINT8:
    case HVD_INT8:
    case HVD_BOOL:
    case HVD_FLOAT8_E4M3FN:
    case HVD_FLOAT8_E5M2:
      return 1;
    case HVD_UINT16:
    case HVD_INT16:
    case HVD_FLOAT16:
    case HVD_BFLOAT16:
      return 2;
    case HVD_UINT32:
    case HVD_INT32:
    case HVD_FLOAT32:
      return 4;
    case HVD_UINT64:
    case HVD_INT64:
    case HVD_FLOAT64:
    case HVD_COMPLEX64:
      return 8;
    case HVD_COMPLEX128:
      return 16;
  }
  return 0;
}

}  // namespace hvd::rt
