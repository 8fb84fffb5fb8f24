// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/nccl/nccl_collectives.h"

#include <sched.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace hvd::rt {
namespace {

// More different scales than this are no training's: those made before are given back.
constexpr size_t kMostScaled = 64;

const std::byte* At(const void* memory, size_t bytes) {
  return static_cast<const std::byte*>(memory) + bytes;
}
std::byte* At(void* memory, size_t bytes) { return static_cast<std::byte*>(memory) + bytes; }

bool AllEqual(absl::Span<const size_t> sizes) {
  return std::all_of(sizes.begin(), sizes.end(), [&](size_t size) { return size == sizes[0]; });
}

}  // namespace

// The calls between a group's beginning and its End go to the device as one.
class NcclCollectives::Group {
 public:
  explicit Group(NcclCollectives* of) : of_(*of), calls_(Nccl().calls()) {
    Note(calls_.group_start(), "ncclGroupStart");
  }
  ~Group() {
    if (open_) (void)calls_.group_end();
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  const NcclFunctions& calls() const { return calls_; }
  NcclCommunicator communicator() const { return of_.parts_.communicator->handle(); }
  CudaStream stream() const { return of_.parts_.stream; }
  // The first error counts.
  void Note(NcclResult result, const char* what) {
    if (status_.ok()) status_ = Nccl().Check(result, what, communicator());
  }
  absl::Status End() {
    open_ = false;
    Note(calls_.group_end(), "ncclGroupEnd");
    return status_.ok() ? of_.AwaitReady() : status_;
  }

 private:
  const NcclLibrary& Nccl() const { return of_.parts_.communicator->nccl(); }

  NcclCollectives& of_;
  const NcclFunctions& calls_;
  bool open_ = true;
  absl::Status status_;
};

absl::Status NcclCollectives::AwaitReady() {
  for (;;) {
    const absl::StatusOr<bool> ready = parts_.communicator->IsReady();
    if (!ready.ok()) return ready.status();
    if (*ready) return absl::OkStatus();
    if (absl::Status epoch = parts_.check(); !epoch.ok()) return epoch;
    sched_yield();
  }
}

absl::StatusOr<NcclOp> NcclCollectives::ScaledSum(NcclType type, double scale) {
  unsigned char scalar[8] = {};
  if (!PutNcclScalar(type, scale, scalar)) {
    return absl::InternalError(absl::StrCat("NCCL cannot multiply with ", scale));
  }
  uint64_t bits = 0;
  std::memcpy(&bits, scalar, sizeof(bits));
  const auto key = std::make_pair(int{type}, bits);
  if (const auto known = scaled_.find(key); known != scaled_.end()) return known->second;
  const NcclLibrary& nccl = parts_.communicator->nccl();
  const NcclCommunicator communicator = parts_.communicator->handle();
  if (scaled_.size() >= kMostScaled) {
    for (const auto& [old, op] : scaled_) (void)nccl.calls().destroy_op(op, communicator);
    scaled_.clear();
  }
  NcclOp op = kNcclSum;
  absl::Status made =
      nccl.Check(nccl.calls().make_scaled_sum(&op, scalar, type, kNcclScalarOnHost, communicator),
                 "ncclRedOpCreatePreMulSum", communicator);
  if (!made.ok()) return made;
  scaled_[key] = op;
  return op;
}

template <class Args>
absl::StatusOr<NcclCollectives::Reducing> NcclCollectives::PlanReduction(const Args& args) {
  ReductionAsked asked;
  asked.dtype = args.dtype;
  asked.op = args.op;
  asked.prescale = args.prescale;
  asked.postscale = args.postscale;
  const bool scaled = args.prescale != 1 || args.postscale != 1;
  const int divisor = args.divisor == 0 ? size() : args.divisor;
  if (args.op == HVD_AVERAGE && (scaled || divisor != size())) asked.divisor = divisor;
  const auto plan = PlanNcclReduction(asked);
  if (!plan) return absl::InternalError("NCCL does no such reduction");
  if (plan->op != kNcclSum || plan->scale == 1) return Reducing{plan->numbers, plan->op};
  const auto op = ScaledSum(plan->numbers.type, plan->scale);
  if (!op.ok()) return op.status();
  return Reducing{plan->numbers, *op};
}

absl::Status NcclCollectives::Allreduce(const ReduceArgs& args) {
  const auto reducing = PlanReduction(args);
  if (!reducing.ok()) return reducing.status();
  const ReducePart single = {args.input, args.output, args.count, {}, {}};
  const absl::Span<const ReducePart> parts =
      args.parts.empty() ? absl::Span<const ReducePart>(&single, 1) : args.parts;
  Group group(this);
  for (const ReducePart& part : parts) {
    if (part.count == 0) continue;
    group.Note(group.calls().all_reduce(part.input, part.output,
                                        part.count * reducing->numbers.each, reducing->numbers.type,
                                        reducing->op, group.communicator(), group.stream()),
               "ncclAllReduce");
  }
  return group.End();
}

absl::Status NcclCollectives::ReduceScatter(const ReduceScatterArgs& args) {
  const auto reducing = PlanReduction(args);
  if (!reducing.ok()) return reducing.status();
  const auto [type, each] = reducing->numbers;
  Group group(this);
  if (AllEqual(args.count_by_rank)) {
    const size_t count = args.count_by_rank[0] * each;
    if (count > 0) {
      group.Note(group.calls().reduce_scatter(args.input, args.output, count, type, reducing->op,
                                              group.communicator(), group.stream()),
                 "ncclReduceScatter");
    }
    return group.End();
  }
  size_t at = 0;
  const size_t element = DtypeBytes(args.dtype);
  for (int root = 0; root < size(); ++root) {
    const size_t count = args.count_by_rank[root];
    if (count > 0) {
      group.Note(group.calls().reduce(At(args.input, at), args.output, count * each, type,
                                      reducing->op, root, group.communicator(), group.stream()),
                 "ncclReduce");
    }
    at += count * element;
  }
  return group.End();
}

absl::Status NcclCollectives::Allgather(const GatherArgs& args) {
  Group group(this);
  if (AllEqual(args.bytes_by_rank)) {
    if (args.bytes_by_rank[0] > 0) {
      group.Note(group.calls().all_gather(args.input, args.output, args.bytes_by_rank[0],
                                          kNcclUint8, group.communicator(), group.stream()),
                 "ncclAllGather");
    }
    return group.End();
  }
  size_t at = 0;
  for (int root = 0; root < size(); ++root) {
    const size_t bytes = args.bytes_by_rank[root];
    if (bytes > 0) {
      group.Note(group.calls().broadcast(args.input, At(args.output, at), bytes, kNcclUint8, root,
                                         group.communicator(), group.stream()),
                 "ncclBroadcast");
    }
    at += bytes;
  }
  return group.End();
}

absl::Status NcclCollectives::Alltoall(const AlltoallArgs& args) {
  Group group(this);
  size_t from = 0, to = 0;
  for (int peer = 0; peer < size(); ++peer) {
    if (args.send_bytes[peer] > 0) {
      group.Note(group.calls().send(At(args.input, from), args.send_bytes[peer], kNcclUint8, peer,
                                    group.communicator(), group.stream()),
                 "ncclSend");
    }
    if (args.receive_bytes[peer] > 0) {
      group.Note(group.calls().receive(At(args.output, to), args.receive_bytes[peer], kNcclUint8,
                                       peer, group.communicator(), group.stream()),
                 "ncclRecv");
    }
    from += args.send_bytes[peer];
    to += args.receive_bytes[peer];
  }
  return group.End();
}

absl::Status NcclCollectives::Broadcast(const BroadcastArgs& args) {
  if (args.bytes == 0) return absl::OkStatus();
  Group group(this);
  group.Note(group.calls().broadcast(args.input, args.output, args.bytes, kNcclUint8, args.root,
                                     group.communicator(), group.stream()),
             "ncclBroadcast");
  return group.End();
}

absl::Status NcclCollectives::Barrier() {
  return absl::InternalError("a barrier lies on no device");
}

}  // namespace hvd::rt
