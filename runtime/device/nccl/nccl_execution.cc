// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/nccl/nccl_execution.h"

#include <numeric>

#include "runtime/engine/execution/execute.h"
#include "runtime/engine/execution/fusion.h"
#include "runtime/engine/execution/reduction.h"
#include "runtime/engine/request/tensor_bytes.h"

namespace hvd::rt {

absl::Status NcclExecution::Execute(const DeviceRun& run) {
  if (ReducesPlainly(*run.entries[0])) return ReduceFused(run);
  if (run.requests[0] == nullptr) return ExecuteAbsent(*run.entries[0]);
  return ExecuteRequest({run.requests[0], *run.entries[0], parts_.collectives, parts_.sizes});
}

absl::Status NcclExecution::ReduceFused(const DeviceRun& run) {
  size_t absent = 0;  // elements
  for (size_t i = 0; i < run.entries.size(); ++i) {
    if (run.requests[i] == nullptr) absent += run.entries[i]->signature.elements();
  }
  const Signature& first = run.entries[0]->signature;
  std::byte* at = nullptr;
  if (absent > 0) {
    const auto memory = parts_.absent->Take(absent * ElementBytes(first));
    if (!memory.ok()) return memory.status();
    at = *memory;
    if (absl::Status filled = parts_.absent->Fill(first, at, absent); !filled.ok()) return filled;
  }
  std::vector<ReducePart> parts;
  for (size_t i = 0; i < run.entries.size(); ++i) {
    const auto counts = ShareCounts(*run.entries[i], run.requests[i]);
    if (!counts.ok()) return counts.status();
    if (run.requests[i] != nullptr) {
      AppendParts(*run.requests[i], &parts);
      continue;
    }
    for (const size_t count : *counts) {
      parts.push_back({at, at, count, {}, {}});
      at += count * ElementBytes(first);
    }
  }
  return Reduce(*run.entries[0], parts, parts_.collectives);
}

// The elements of each tensor. NCCL matches the calls of a group, so a rank that has joined must
// make as many. Where a signature does not hold them all, those who know tell, and all call this;
// nobody asks when all have brought something.
absl::StatusOr<std::vector<size_t>> NcclExecution::ShareCounts(const LogEntry& entry,
                                                               const Request* request) const {
  const Signature& signature = entry.signature;
  if (!signature.is_group()) return std::vector<size_t>{signature.elements()};
  const auto tensors = static_cast<size_t>(signature.group_count);
  if (signature.group_count <= kMaxDimensions) {
    return std::vector<size_t>(signature.shape.begin(), signature.shape.begin() + tensors);
  }
  if (AllContribute(entry, parts_.collectives->size())) return std::vector<size_t>();
  std::vector<ReducePart> mine;
  if (request != nullptr) AppendParts(*request, &mine);
  std::vector<int64_t> counts(tensors);
  for (size_t i = 0; i < mine.size(); ++i) counts[i] = static_cast<int64_t>(mine[i].count);
  ReduceArgs most;
  most.input = most.output = counts.data();
  most.count = counts.size();
  most.dtype = HVD_INT64;
  most.op = HVD_MAX;
  absl::Status told = parts_.sizes->Allreduce(most);
  if (!told.ok()) return told;
  return std::vector<size_t>(counts.begin(), counts.end());
}

// Does the part of a rank that has joined, but for reductions, which are never alone here.
absl::Status NcclExecution::ExecuteAbsent(const LogEntry& entry) {
  const Signature& signature = entry.signature;
  if (signature.kind != RequestKind::kAllgather) return absl::OkStatus();
  if (!signature.is_group()) {
    std::vector<size_t> bytes_by_rank;
    for (const int64_t rows : entry.rows) {
      bytes_by_rank.push_back(static_cast<size_t>(rows) * RowBytes(signature));
    }
    return DropGathered(bytes_by_rank);
  }
  const std::vector<RowsAndBytes> nothing(static_cast<size_t>(signature.group_count));
  const auto all = ExchangeRows(nothing, parts_.sizes);
  if (!all.ok()) return all.status();
  for (size_t t = 0; t < nothing.size(); ++t) {
    std::vector<size_t> bytes_by_rank;
    for (size_t at = t; at < all->size(); at += nothing.size()) {
      bytes_by_rank.push_back(static_cast<size_t>((*all)[at].rows * (*all)[at].row_bytes));
    }
    if (absl::Status dropped = DropGathered(bytes_by_rank); !dropped.ok()) return dropped;
  }
  return absl::OkStatus();
}

absl::Status NcclExecution::DropGathered(const std::vector<size_t>& bytes_by_rank) {
  const auto room =
      parts_.absent->Take(std::accumulate(bytes_by_rank.begin(), bytes_by_rank.end(), size_t{0}));
  if (!room.ok()) return room.status();
  return parts_.collectives->Allgather({*room, *room, bytes_by_rank});
}

}  // namespace hvd::rt
