#include "runtime/engine/direct_execute.h"

#include <algorithm>
#include <cstring>

#include "runtime/collective/kernels/copy.h"
#include "runtime/collective/kernels/reduce_kernels.h"
#include "runtime/engine/execute.h"

namespace hvd {
namespace {

using PieceBytes = uint32_t;  // of what an alltoall sends one rank

size_t Width(const Signature& s) { return DtypeBytes(static_cast<hvd_dtype_t>(s.dtype)); }
size_t RowBytes(const Signature& s) { return s.row_elements() * Width(s); }
const std::byte* InputOf(const Request& request) {
  return static_cast<const std::byte*>(request.input);
}

void Copy(void* to, const void* from, size_t bytes) {
  if (to != from) CopyBytes(to, from, bytes);
}

// Of an alltoall, to rank `peer`.
size_t PieceFor(const Request& request, int size, int peer) {
  const int64_t rows =
      request.splits.empty() ? request.signature.rows() / size : request.splits[peer];
  return static_cast<size_t>(rows) * RowBytes(request.signature);
}

// All but a range of the input, in its place.
void WriteAllBut(const Request& request, const ScatteredRows& mine, std::byte* room) {
  const size_t row_bytes = RowBytes(request.signature);
  const size_t begin = mine.begin * row_bytes, end = begin + mine.count * row_bytes;
  Copy(room, request.input, begin);
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

// Everyone's marks of one request.
class DirectExecution {
 public:
  DirectExecution(const Direct& direct, const DirectTicket& ticket, Request* request)
      : direct_(direct),
        ticket_(ticket),
        request_(request),
        signature_(request->signature),
        me_(direct.index()),
        size_(direct.size()) {}

  absl::Status Run() {
    switch (signature_.kind) {
      case RequestKind::kAllreduce:
        return Reduce(0, signature_.elements(), request_->output);
      case RequestKind::kReduceScatter:
        return ReduceScatter();
      case RequestKind::kAllgather:
        return Allgather();
      case RequestKind::kAlltoall:
        return Alltoall();
      case RequestKind::kBroadcast:
        Copy(request_->output, OfPeer(request_->root_index),
             signature_.elements() * Width(signature_));
        return absl::OkStatus();
      default:
        return absl::OkStatus();  // a barrier: that all have marked is all there is to it
    }
  }

 private:
  const std::byte* OfPeer(int peer) const {
    return peer == me_ ? InputOf(*request_) : direct_.TensorAt(ticket_, peer);
  }

  absl::Status Reduce(size_t begin, size_t count, void* output) const {
    const bool averages = signature_.op == HVD_AVERAGE || signature_.op == kAverageOfContributors;
    const ReduceKernel kernel = FindReduceKernel(
        static_cast<hvd_dtype_t>(signature_.dtype),
        averages ? HVD_AVERAGE : static_cast<hvd_op_t>(signature_.op), BestKernelLevel());
    if (kernel == nullptr) return absl::InvalidArgumentError("bool has no average; use MIN or MAX");
    const void* sources[kMaxLocalRanks];
    for (int peer = 0; peer < size_; ++peer)
      sources[peer] = OfPeer(peer) + begin * Width(signature_);
    kernel({sources, size_, &output, 1, count, averages ? size_ : 1});
    return absl::OkStatus();
  }

  absl::Status ReduceScatter() {
    const ScatteredRows mine(signature_.rows(), size_, me_);
    const size_t elements = signature_.row_elements();
    void* output = nullptr;
    absl::Status placed = Place(mine.count, mine.count * RowBytes(signature_), &output);
    if (!placed.ok()) return placed;
    return Reduce(mine.begin * elements, mine.count * elements, output);
  }

  absl::Status Allgather() {
    size_t all = 0;
    for (int peer = 0; peer < size_; ++peer) all += BytesOf(peer);
    void* output = nullptr;
    absl::Status placed = Place(static_cast<int64_t>(all / RowBytes(signature_)), all, &output);
    if (absl::IsInternal(placed)) return placed;
    auto* to = static_cast<std::byte*>(output);
    for (int peer = 0; peer < size_; ++peer) {
      // Not from the input, which may lie in the output.
      if (to != request_->input) Copy(to, direct_.TensorAt(ticket_, peer), BytesOf(peer));
      to += BytesOf(peer);
    }
    return placed;
  }

  absl::Status Alltoall() {
    const std::byte* pieces[kMaxLocalRanks];
    int64_t rows_of[kMaxLocalRanks];
    const size_t row_bytes = RowBytes(signature_);
    int64_t rows = 0;
    for (int peer = 0; peer < size_; ++peer) {
      size_t bytes = 0;
      pieces[peer] = PieceOf(peer, &bytes);
      rows_of[peer] = static_cast<int64_t>(bytes / row_bytes);
      rows += rows_of[peer];
    }
    if (request_->wants_received_splits) request_->received_splits.assign(rows_of, rows_of + size_);
    void* output = nullptr;
    absl::Status placed = Place(rows, rows * row_bytes, &output);
    if (absl::IsInternal(placed)) return placed;
    auto* to = static_cast<std::byte*>(output);
    for (int peer = 0; peer < size_; ++peer) {
      const size_t bytes = static_cast<size_t>(rows_of[peer]) * row_bytes;
      Copy(to, pieces[peer], bytes);
      to += bytes;
    }
    return placed;
  }

  // What `peer` sends this rank.
  const std::byte* PieceOf(int peer, size_t* bytes) const {
    if (peer == me_) {
      const std::byte* at = InputOf(*request_);
      for (int to = 0; to < me_; ++to) at += PieceFor(*request_, size_, to);
      *bytes = PieceFor(*request_, size_, me_);
      return at;
    }
    const std::byte* theirs = direct_.TensorAt(ticket_, peer);
    PieceBytes all[kMaxLocalRanks];
    memcpy(all, theirs, (me_ + 1) * sizeof(PieceBytes));
    const std::byte* at = theirs + size_ * sizeof(PieceBytes);
    for (int to = 0; to < me_; ++to) at += all[to];
    *bytes = all[me_];
    return at;
  }

  size_t BytesOf(int peer) const { return Direct::BytesOf(direct_.WordAt(ticket_, peer)); }

  absl::Status Place(int64_t rows, size_t bytes, void** output) {
    ResultSize size;
    size.shape = {signature_.shape.data(), static_cast<size_t>(signature_.ndim)};
    size.rows = rows;
    size.bytes = bytes;
    return PlaceResult([this] { return NameOf(*request_); }, PlaceOf(request_), size, output);
  }

  const Direct& direct_;
  const DirectTicket& ticket_;
  Request* request_;
  const Signature& signature_;
  const int me_, size_;
};

}  // namespace

uint64_t DirectWord(const Request& request, int size) {
  const uint64_t word = Direct::WordOf(request.signature);
  if (request.signature.kind != RequestKind::kAlltoall || word == Direct::kThroughBoard)
    return word;
  const size_t more = static_cast<size_t>(size) * sizeof(PieceBytes);
  return Direct::BytesOf(word) + more <= Direct::kMaxBytes ? word + more : Direct::kThroughBoard;
}

void WriteDirect(const Request& request, const Direct& direct, std::byte* room) {
  const Signature& s = request.signature;
  switch (s.kind) {
    case RequestKind::kBroadcast:
      if (request.root_index != direct.index()) return;
      [[fallthrough]];
    case RequestKind::kAllreduce:
    case RequestKind::kAllgather:
      return Copy(room, request.input, s.elements() * Width(s));
    case RequestKind::kReduceScatter:
      return WriteAllBut(request, ScatteredRows(s.rows(), direct.size(), direct.index()), room);
    case RequestKind::kAlltoall:
      return WriteAlltoall(request, direct, room);
    default:
      return;  // brings nothing
  }
}

absl::Status ExecuteDirect(const Direct& direct, const DirectTicket& ticket, Request* request) {
  return DirectExecution(direct, ticket, request).Run();
}

}  // namespace hvd
