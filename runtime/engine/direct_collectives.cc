#include <algorithm>
#include <cstring>

#include "runtime/collective/kernels/reduce_kernels.h"
#include "runtime/engine/direct.h"

namespace hvd {

absl::Status DirectCollectives::Allreduce(const ReduceArgs& args) {
  const ReduceKernel kernel = FindReduceKernel(args.dtype, args.op, BestKernelLevel());
  if (kernel == nullptr) return absl::InvalidArgumentError("bool has no average; use MIN or MAX");
  const void* sources[kMaxLocalRanks];
  for (int peer = 0; peer < size(); ++peer) sources[peer] = direct_.TensorAt(ticket_, peer);
  void* destination = args.output;
  kernel({sources, size(), &destination, 1, args.count, args.op == HVD_AVERAGE ? size() : 1});
  return absl::OkStatus();
}

absl::Status DirectCollectives::Allgather(const GatherArgs& args) {
  auto* output = static_cast<std::byte*>(args.output);
  for (int peer = 0; peer < size(); ++peer) {
    const size_t bytes = args.bytes_by_rank[peer];
    if (bytes > 0) memcpy(output, direct_.TensorAt(ticket_, peer), bytes);
    output += bytes;
  }
  return absl::OkStatus();
}

absl::Status DirectCollectives::Broadcast(const BroadcastArgs& args) {
  if (args.bytes > 0 && (rank() != args.root || args.output != args.input)) {
    memcpy(args.output, direct_.TensorAt(ticket_, args.root), args.bytes);
  }
  return absl::OkStatus();
}

}  // namespace hvd
