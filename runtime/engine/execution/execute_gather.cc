// SPDX-License-Identifier: Apache-2.0
// Allgather, one tensor or a group.
#include <numeric>

#include "runtime/engine/execution/execute.h"
#include "runtime/engine/request/tensor_bytes.h"

namespace hvd::rt {
namespace {

// One tensor's gather into its place. `wrong` gets what is wrong with that, if it has nothing yet.
struct Gathering {
  const ResultPlace& place;
  Collectives* collectives;
  absl::Status* wrong;
};
absl::Status Gather(absl::FunctionRef<std::string()> what, const Gathering& gathering,
                    ResultSize size, GatherArgs args) {
  const auto own = args.bytes_by_rank.begin() + gathering.collectives->rank();
  size.own_at = std::accumulate(args.bytes_by_rank.begin(), own, size_t{0});
  size.own_bytes = *own;
  size.bytes = std::accumulate(own, args.bytes_by_rank.end(), size.own_at);
  const absl::Status placed = PlaceResult(what, gathering.place, size, &args.output);
  if (gathering.wrong->ok()) *gathering.wrong = placed;
  return gathering.collectives->Allgather(args);
}

}  // namespace

absl::Status ExecuteAllgather(const Execution& work) {
  Request* request = work.request;
  const Signature& signature = request->signature;
  const size_t row_bytes = RowBytes(signature);
  std::vector<size_t> bytes_by_rank;
  ResultSize size;
  for (const int64_t rows : work.entry.rows) {
    size.rows += rows;
    bytes_by_rank.push_back(static_cast<size_t>(rows) * row_bytes);
  }
  size.shape = {signature.shape.data(), static_cast<size_t>(signature.ndim)};
  return Gather([request] { return NameOf(*request); },
                {PlaceOf(request), work.collectives, &request->result.status}, size,
                {request->buffers.input, nullptr, bytes_by_rank});
}

absl::StatusOr<std::vector<RowsAndBytes>> ExchangeRows(absl::Span<const RowsAndBytes> mine,
                                                       Collectives* collectives) {
  const auto ranks = static_cast<size_t>(collectives->size());
  std::vector<RowsAndBytes> all(ranks * mine.size());
  const std::vector<size_t> bytes(ranks, mine.size() * sizeof(RowsAndBytes));
  absl::Status told = collectives->Allgather({mine.data(), all.data(), bytes});
  if (!told.ok()) return told;
  return all;
}

// A rank whose output of one tensor does not fit goes on with the next.
absl::Status ExecuteGroupedAllgather(const Execution& work) {
  Request* request = work.request;
  std::vector<RowsAndBytes> mine;
  for (const RequestPart& part : request->buffers.parts) {
    const int64_t row_elements = std::accumulate(part.shape.begin() + 1, part.shape.end(),
                                                 int64_t{1}, std::multiplies<int64_t>());
    mine.push_back(
        {part.shape[0], row_elements * static_cast<int64_t>(ElementBytes(request->signature))});
  }
  const auto all = ExchangeRows(mine, work.sizes);
  if (!all.ok()) return all.status();
  for (size_t t = 0; t < mine.size(); ++t) {
    RequestPart& part = request->buffers.parts[t];
    std::vector<size_t> bytes_by_rank;
    ResultSize size;
    for (size_t at = t; at < all->size(); at += mine.size()) {
      size.rows += (*all)[at].rows;
      bytes_by_rank.push_back(static_cast<size_t>((*all)[at].rows * mine[t].row_bytes));
    }
    size.shape = part.shape;
    const auto what = [&] { return NameOf(*request) + " tensor " + std::to_string(part.position); };
    const absl::Status gathered =
        Gather(what, {PlaceOf(*request, &part), work.collectives, &request->result.status}, size,
               {part.input, nullptr, bytes_by_rank});
    if (!gathered.ok()) return gathered;
  }
  return absl::OkStatus();
}

}  // namespace hvd::rt
