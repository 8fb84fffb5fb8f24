// SPDX-License-Identifier: Apache-2.0
// Reduce-scatter, one tensor or a group, and alltoall.
#include <numeric>

#include "runtime/engine/execution/execute.h"
#include "runtime/engine/execution/reduction.h"
#include "runtime/engine/request/tensor_bytes.h"

namespace hvd::rt {
namespace {

std::vector<size_t> RowsByRank(int64_t rows, int ranks) {
  std::vector<size_t> by_rank;
  for (int rank = 0; rank < ranks; ++rank) {
    by_rank.push_back(static_cast<size_t>(ScatteredRows(rows, ranks, rank).count));
  }
  return by_rank;
}

size_t Product(absl::Span<const int64_t> extents) {
  return static_cast<size_t>(
      std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<int64_t>()));
}

// One tensor. (The check of the call has made sure that an output of the caller's fits.)
absl::Status ScatterOne(const Execution& work, absl::Span<const int64_t> shape,
                        const ResultPlace& place) {
  const size_t row_elements = Product(shape.subspan(1));
  std::vector<size_t> counts = RowsByRank(shape[0], work.collectives->size());
  ResultSize size;
  size.shape = shape;
  size.rows = static_cast<int64_t>(counts[work.collectives->rank()]);
  for (size_t& count : counts) count *= row_elements;
  size.bytes = counts[work.collectives->rank()] *
               DtypeBytes(static_cast<hvd_dtype_t>(work.request->signature.dtype));
  ReduceScatterArgs args;
  args.input = place.input;
  args.count_by_rank = counts;
  const absl::Status placed =
      PlaceResult([&work] { return NameOf(*work.request); }, place, size, &args.output);
  if (work.request->result.status.ok()) work.request->result.status = placed;
  return Scatter(work.entry, args, work.collectives);
}

// Everyone's splits, by sender and receiver.
absl::StatusOr<std::vector<int64_t>> ExchangeSplits(const std::vector<int64_t>& mine,
                                                    Collectives* collectives) {
  std::vector<int64_t> all(mine.size() * mine.size());
  const std::vector<size_t> bytes(mine.size(), mine.size() * sizeof(int64_t));
  absl::Status told = collectives->Allgather({mine.data(), all.data(), bytes});
  if (!told.ok()) return told;
  return all;
}

std::vector<int64_t> SplitsOf(const Request& request, int ranks) {
  if (!request.buffers.splits.empty()) return request.buffers.splits;
  return std::vector<int64_t>(static_cast<size_t>(ranks), request.signature.rows() / ranks);
}

}  // namespace

absl::Status ExecuteReduceScatter(const Execution& work) {
  Request* request = work.request;
  const Signature& signature = request->signature;
  absl::Status scattered;
  if (!signature.is_group()) {
    scattered = ScatterOne(work, {signature.shape.data(), static_cast<size_t>(signature.ndim)},
                           PlaceOf(request));
  }
  for (RequestPart& part : request->buffers.parts) {
    if (scattered.ok()) scattered = ScatterOne(work, part.shape, PlaceOf(*request, &part));
  }
  return scattered;
}

absl::Status ExecuteAlltoall(const Execution& work) {
  Request* request = work.request;
  const Signature& signature = request->signature;
  const int ranks = work.collectives->size();
  const size_t row_bytes = RowBytes(signature);
  const std::vector<int64_t> splits = SplitsOf(*request, ranks);
  const auto all = ExchangeSplits(splits, work.sizes);
  if (!all.ok()) return all.status();

  std::vector<size_t> send, receive;
  ResultSize size;
  for (int peer = 0; peer < ranks; ++peer) {
    const int64_t rows = (*all)[static_cast<size_t>(peer) * ranks + work.collectives->rank()];
    request->result.received_splits.push_back(rows);
    size.rows += rows;
    send.push_back(static_cast<size_t>(splits[peer]) * row_bytes);
    receive.push_back(static_cast<size_t>(rows) * row_bytes);
  }
  size.shape = {signature.shape.data(), static_cast<size_t>(signature.ndim)};
  size.bytes = static_cast<size_t>(size.rows) * row_bytes;
  AlltoallArgs args = {request->buffers.input, nullptr, send, receive};
  request->result.status =
      PlaceResult([request] { return NameOf(*request); }, PlaceOf(request), size, &args.output);
  return work.collectives->Alltoall(args);
}

}  // namespace hvd::rt
