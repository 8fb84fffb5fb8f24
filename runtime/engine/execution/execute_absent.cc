// SPDX-License-Identifier: Apache-2.0
// The part of a rank that has joined in the others' collectives: it brings nothing, and drops what
// it gets.
#include <numeric>

#include "runtime/engine/execution/execute.h"
#include "runtime/engine/execution/neutral.h"
#include "runtime/engine/execution/reduction.h"

namespace hvd::rt {
namespace {

bool KnowsNoCounts(const Signature& signature) {
  return signature.op == HVD_ADASUM && signature.is_group();
}

absl::Status AbsentAllreduce(const LogEntry& entry, Collectives* collectives) {
  const Signature& signature = entry.signature;
  const size_t total = signature.elements();
  std::vector<std::byte> memory(total * DtypeBytes(static_cast<hvd_dtype_t>(signature.dtype)));
  FillNeutral(signature, memory.data(), total);
  std::vector<ReducePart> parts(KnowsNoCounts(signature) ? signature.group_count : 1);
  parts[0].count = KnowsNoCounts(signature) ? 0 : total;
  absl::Status told = TellCounts({nullptr, entry, collectives, collectives}, absl::MakeSpan(parts));
  if (!told.ok()) return told;
  std::byte* at = memory.data();
  for (ReducePart& part : parts) {
    part.input = part.output = at;
    at += part.count * DtypeBytes(static_cast<hvd_dtype_t>(signature.dtype));
  }
  return Reduce(ScalesFirst(entry, collectives->size()) ? WithoutPrescale(entry) : entry, parts,
                collectives);
}

absl::Status DropGathered(const std::vector<size_t>& bytes_by_rank, Collectives* collectives) {
  std::vector<std::byte> dropped(
      std::accumulate(bytes_by_rank.begin(), bytes_by_rank.end(), size_t{0}));
  return collectives->Allgather({nullptr, dropped.data(), bytes_by_rank});
}

absl::Status AbsentAllgather(const LogEntry& entry, Collectives* collectives) {
  const Signature& signature = entry.signature;
  const size_t row_bytes =
      signature.row_elements() * DtypeBytes(static_cast<hvd_dtype_t>(signature.dtype));
  std::vector<size_t> bytes_by_rank;
  for (const int64_t rows : entry.rows) {
    bytes_by_rank.push_back(static_cast<size_t>(rows) * row_bytes);
  }
  return DropGathered(bytes_by_rank, collectives);
}

absl::Status AbsentGroupedAllgather(const LogEntry& entry, Collectives* collectives) {
  const std::vector<RowsAndBytes> nothing(static_cast<size_t>(entry.signature.group_count));
  const auto all = ExchangeRows(nothing, collectives);
  if (!all.ok()) return all.status();
  for (size_t t = 0; t < nothing.size(); ++t) {
    std::vector<size_t> bytes_by_rank;
    for (size_t at = t; at < all->size(); at += nothing.size()) {
      bytes_by_rank.push_back(static_cast<size_t>((*all)[at].rows * (*all)[at].row_bytes));
    }
    absl::Status dropped = DropGathered(bytes_by_rank, collectives);
    if (!dropped.ok()) return dropped;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status TellCounts(const Execution& work, absl::Span<ReducePart> parts) {
  if (!KnowsNoCounts(work.entry.signature) || AllContribute(work.entry, work.sizes->size())) {
    return absl::OkStatus();
  }
  std::vector<int64_t> counts;
  for (const ReducePart& part : parts) counts.push_back(static_cast<int64_t>(part.count));
  ReduceArgs most;
  most.input = most.output = counts.data();
  most.count = counts.size();
  most.dtype = HVD_INT64;
  most.op = HVD_MAX;
  if (absl::Status told = work.sizes->Allreduce(most); !told.ok()) return told;
  for (size_t i = 0; i < parts.size(); ++i) parts[i].count = static_cast<size_t>(counts[i]);
  return absl::OkStatus();
}

absl::Status ExecuteAbsent(const LogEntry& entry, Collectives* collectives) {
  if (!entry.error.empty() || !CheckJoined(entry, collectives->size()).ok()) {
    return absl::OkStatus();  // those who asked are told
  }
  switch (entry.signature.kind) {
    case RequestKind::kAllreduce:
      return AbsentAllreduce(entry, collectives);
    case RequestKind::kAllgather:
      return entry.signature.is_group() ? AbsentGroupedAllgather(entry, collectives)
                                        : AbsentAllgather(entry, collectives);
    default:
      return absl::OkStatus();
  }
}

}  // namespace hvd::rt
