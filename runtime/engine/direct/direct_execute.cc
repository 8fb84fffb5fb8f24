// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/direct/direct_execute.h"

#include <algorithm>
#include <cstring>

#include "absl/types/span.h"
#include "runtime/collective/kernels/copy.h"
#include "runtime/collective/kernels/reduce_kernels.h"
#include "runtime/engine/execution/execute.h"
#include "runtime/engine/request/tensor_bytes.h"

namespace hvd::rt {
namespace {

using PieceBytes = uint32_t;  // of what an alltoall sends one rank

const std::byte* InputOf(const Request& request) {
  return static_cast<const std::byte*>(request.buffers.input);
}

void Copy(void* to, const void* from, size_t bytes) {
  if (to != from) CopyBytes(to, from, bytes);
}

// All but a range of the input, in its place.
void WriteAllBut(const Request& request, const ScatteredRows& mine, std::byte* room) {
  const size_t row_bytes = RowBytes(request.signature);
  const size_t begin = mine.begin * row_bytes, end = begin + mine.count * row_bytes;
  Copy(room, request.buffers.input, begin);
  Copy(room + end, InputOf(request) + end, request.signature.rows() * row_bytes - end);
}

void WriteAlltoall(const Request& request, const Direct& direct, std::byte* room) {
  std::byte* to = room + direct.size() * sizeof(PieceBytes);
  const std::byte* from = InputOf(request);
  for (int peer = 0; peer < direct.size(); ++peer) {
    const auto bytes = static_cast<PieceBytes>(PieceFor(request, direct.size(), peer));
    memcpy(room + peer * sizeof(bytes), &bytes, sizeof(bytes));
    if (peer != direct.index()) Copy(to, from, bytes);
    to += bytes;
    from += bytes;
  }
}

// The inputs out of the marks of a small request. Only this rank knows the place of its own input.
class SmallInputs {
 public:
  SmallInputs(const Direct& direct, const DirectTicket& ticket, const Request& request)
      : direct_(direct), ticket_(ticket), request_(request) {}

  const std::byte* At(int peer) const {
    return peer == direct_.index() ? InputOf(request_) : direct_.TensorAt(ticket_, peer);
  }
  ShownInput Of(int peer) const {
    if (request_.signature.kind == RequestKind::kAlltoall) return Piece(peer);
    return {At(peer), BytesOfDirectWord(direct_.WordAt(ticket_, peer))};
  }
  bool streams() const { return false; }

 private:
  // Returns the piece that `peer` sends this rank.
  ShownInput Piece(int peer) const {
    const int me = direct_.index(), size = direct_.size();
    const std::byte* at = At(peer);
    if (peer == me) {
      for (int to = 0; to < me; ++to) at += PieceFor(request_, size, to);
      return {at, PieceFor(request_, size, me)};
    }
    PieceBytes all[kMaxLocalRanks];
    memcpy(all, at, (me + 1) * sizeof(PieceBytes));
    at += size * sizeof(PieceBytes);
    for (int to = 0; to < me; ++to) at += all[to];
    return {at, all[me]};
  }

  const Direct& direct_;
  const DirectTicket& ticket_;
  const Request& request_;
};

// One request, with everyone's inputs.
template <class Inputs>
class DirectExecution {
 public:
  DirectExecution(const Direct& direct, const Inputs& shown, Request* request)
      : shown_(shown),
        request_(request),
        signature_(request->signature),
        me_(direct.index()),
        size_(direct.size()) {}

  absl::Status Run() {
    switch (signature_.kind) {
      case RequestKind::kAllreduce:
        return Reduce(0, signature_.elements(), request_->buffers.output);
      case RequestKind::kReduceScatter:
        return ReduceScatter();
      case RequestKind::kAllgather:
      case RequestKind::kAlltoall:
        return FetchAll();
      case RequestKind::kBroadcast:
        Fetch(request_->buffers.output, {shown_.At(request_->root_index), TensorBytes(signature_)});
        return absl::OkStatus();
      default:
        return absl::OkStatus();  // a barrier: that all have marked is all there is to it
    }
  }

 private:
  absl::Status Reduce(size_t begin, size_t count, void* output) const {
    const bool averages = signature_.op == HVD_AVERAGE || signature_.op == kAverageOfContributors;
    const auto dtype = static_cast<hvd_dtype_t>(signature_.dtype);
    const auto op = averages ? HVD_AVERAGE : static_cast<hvd_op_t>(signature_.op);
    const ReduceKernel kernel = FindReduceKernel(dtype, op, BestKernelLevel());
    if (kernel == nullptr) return KernelFor({dtype, op}).status();
    const void* sources[kMaxLocalRanks];
    for (int peer = 0; peer < size_; ++peer)
      sources[peer] = shown_.At(peer) + begin * ElementBytes(signature_);
    kernel({sources, size_, &output, 1, count, averages ? size_ : 1});
    return absl::OkStatus();
  }

  absl::Status ReduceScatter() {
    const ScatteredRows mine(signature_.rows(), size_, me_);
    const size_t elements = signature_.row_elements();
    void* output = nullptr;
    const auto rows = static_cast<int64_t>(mine.count);
    if (!Place({{}, rows, rows * RowBytes(signature_)}, &output)) return absl::OkStatus();
    return Reduce(mine.begin * elements, mine.count * elements, output);
  }

  // An allgather or alltoall: everyone's, one after the other by rank. Each begins with its right
  // neighbour's: where two read the same at once, each hinders the other.
  absl::Status FetchAll() {
    ShownInput inputs[kMaxLocalRanks];
    size_t bytes = 0, first_bytes = 0;  // of all; up to this rank's own
    for (int peer = 0; peer < size_; ++peer) {
      inputs[peer] = shown_.Of(peer);
      bytes += inputs[peer].bytes;
      if (peer <= me_) first_bytes = bytes;
    }
    if (request_->buffers.wants_received_splits && signature_.kind == RequestKind::kAlltoall) {
      NoteSplits({inputs, static_cast<size_t>(size_)});
    }
    void* output = nullptr;
    ResultSize result{{}, static_cast<int64_t>(bytes / RowBytes(signature_)), bytes};
    if (signature_.kind == RequestKind::kAllgather) result.own_bytes = inputs[me_].bytes;
    result.own_at = first_bytes - result.own_bytes;
    (void)Place(result, &output);  // what does not fit is dropped
    auto* to = static_cast<std::byte*>(output);
    std::byte* rest = to + first_bytes;
    for (int peer = me_ + 1; peer < size_; ++peer) rest = Fetch(rest, inputs[peer]);
    for (int peer = 0; peer <= me_; ++peer) to = Fetch(to, inputs[peer]);
    return absl::OkStatus();
  }

  void NoteSplits(absl::Span<const ShownInput> inputs) {
    request_->result.received_splits.clear();
    for (const ShownInput& input : inputs) {
      request_->result.received_splits.push_back(
          static_cast<int64_t>(input.bytes / RowBytes(signature_)));
    }
  }

  // Returns where the next one goes.
  std::byte* Fetch(void* to, const ShownInput& input) const {
    std::byte* const next = static_cast<std::byte*>(to) + input.bytes;
    if (to == input.at) return next;
    if (shown_.streams()) {
      StreamCopy(to, input.at, input.bytes);
    } else {
      CopyBytes(to, input.at, input.bytes);
    }
    return next;
  }

  bool Place(ResultSize size, void** output) {
    size.shape = {signature_.shape.data(), static_cast<size_t>(signature_.ndim)};
    request_->result.status =
        PlaceResult([this] { return NameOf(*request_); }, PlaceOf(request_), size, output);
    return request_->result.status.ok();
  }

  const Inputs& shown_;
  Request* request_;
  const Signature& signature_;
  const int me_, size_;
};

}  // namespace

size_t PieceFor(const Request& request, int size, int peer) {
  const int64_t rows = request.buffers.splits.empty() ? request.signature.rows() / size
                                                      : request.buffers.splits[peer];
  return static_cast<size_t>(rows) * RowBytes(request.signature);
}

uint64_t DirectWord(const Request& request, int size) {
  const uint64_t word = DirectWordOf(request.signature);
  if (request.signature.kind != RequestKind::kAlltoall || word == kThroughBoard) return word;
  const size_t more = static_cast<size_t>(size) * sizeof(PieceBytes);
  return BytesOfDirectWord(word) + more <= kMostDirectBytes ? word + more : kThroughBoard;
}

void WriteDirect(const Request& request, const Direct& direct, std::byte* room) {
  const Signature& s = request.signature;
  switch (s.kind) {
    case RequestKind::kBroadcast:
      if (request.root_index != direct.index()) return;
      [[fallthrough]];
    case RequestKind::kAllreduce:
    case RequestKind::kAllgather:
      return Copy(room, request.buffers.input, TensorBytes(s));
    case RequestKind::kReduceScatter:
      return WriteAllBut(request, ScatteredRows(s.rows(), direct.size(), direct.index()), room);
    case RequestKind::kAlltoall:
      return WriteAlltoall(request, direct, room);
    default:
      return;  // brings nothing
  }
}

absl::Status ExecuteDirect(const Direct& direct, const DirectTicket& ticket, Request* request) {
  const SmallInputs inputs(direct, ticket, *request);
  return DirectExecution(direct, inputs, request).Run();
}

absl::Status ExecuteShown(const Direct& direct, const ShownInputs& inputs, Request* request) {
  return DirectExecution(direct, inputs, request).Run();
}

}  // namespace hvd::rt
