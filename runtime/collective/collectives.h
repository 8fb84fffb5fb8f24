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

namespace hvd {

struct ReduceArgs {
  const void* input = nullptr;
  void* output = nullptr;  // == input: in place; else no overlap
  size_t count = 0;        // elements
  hvd_dtype_t dtype = HVD_FLOAT32;
  hvd_op_t op =
      HVD_SUM;  // AVERAGE divides the sum by the group's size (integers truncate towards zero)
};

struct GatherArgs {
  const void* input = nullptr;
  void* output = nullptr;  // the ranks' parts one after the other; may contain input at its place
  absl::Span<const size_t> bytes_by_rank;  // size() entries; zero is allowed
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
  virtual absl::Status Allgather(const GatherArgs& args) = 0;
  virtual absl::Status Broadcast(const BroadcastArgs& args) = 0;
  virtual absl::Status Barrier() = 0;
};

size_t DtypeBytes(hvd_dtype_t dtype);

}  // namespace hvd
