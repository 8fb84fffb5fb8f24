// SPDX-License-Identifier: Apache-2.0
#include "runtime/bucket/layout.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/engine/request/request.h"

namespace hvd::rt {
namespace {

// A row: its fields, then the elements of each tensor, then the tensors of each chunk.
enum Field { kRank, kDtype, kTensors, kChunks, kFields };

struct Layout {
  int64_t rank = 0, dtype = 0;
  absl::Span<const int64_t> tensors, chunks;
};

// Takes the first row away. False when what is left is no row.
bool TakeRow(absl::Span<const int64_t>* rows, Layout* layout) {
  if (rows->size() < kFields) return false;
  const auto tensors = static_cast<size_t>((*rows)[kTensors]);
  const auto chunks = static_cast<size_t>((*rows)[kChunks]);
  const size_t numbers = rows->size() - kFields;
  if (tensors > numbers || chunks > numbers - tensors) return false;
  layout->rank = (*rows)[kRank];
  layout->dtype = (*rows)[kDtype];
  layout->tensors = rows->subspan(kFields, tensors);
  layout->chunks = rows->subspan(kFields + tensors, chunks);
  rows->remove_prefix(kFields + tensors + chunks);
  return true;
}

struct Pair {
  const Layout &a, &b;
};

std::string Beside(const Pair& pair, absl::string_view had, absl::string_view has) {
  return absl::StrCat("rank ", pair.a.rank, " has ", had, ", rank ", pair.b.rank, " has ", has);
}

// Numbers of a layout: what each belongs to, and what it counts.
struct Numbers {
  absl::string_view owner, counted;
  absl::Span<const int64_t> Layout::*list;
};

// At the first place where two equally long lists differ; empty: nowhere.
std::string FirstDifference(const Pair& pair, const Numbers& numbers) {
  const absl::Span<const int64_t> a = pair.a.*numbers.list, b = pair.b.*numbers.list;
  const auto [at, other] = std::mismatch(a.begin(), a.end(), b.begin());
  if (at == a.end()) return "";
  return absl::StrCat(numbers.owner, " ", at - a.begin(), ": ",
                      Beside(pair, absl::StrCat(*at, " ", numbers.counted), absl::StrCat(*other)));
}

std::string Difference(const Pair& pair) {
  const auto& [a, b] = pair;
  if (a.dtype != b.dtype) {
    return Beside(pair, DtypeName(static_cast<hvd_dtype_t>(a.dtype)),
                  DtypeName(static_cast<hvd_dtype_t>(b.dtype)));
  }
  if (a.tensors.size() != b.tensors.size()) {
    return Beside(pair, absl::StrCat(a.tensors.size(), " tensors"), absl::StrCat(b.tensors.size()));
  }
  std::string text = FirstDifference(pair, {"tensor", "elements", &Layout::tensors});
  if (!text.empty() || a.chunks == b.chunks) return text;
  if (a.chunks.size() != b.chunks.size()) {
    text = Beside(pair, absl::StrCat(a.chunks.size(), " chunks"), absl::StrCat(b.chunks.size()));
  } else {
    text = FirstDifference(pair, {"chunk", "tensors", &Layout::chunks});
  }
  return text + " (chunk_bytes, HVD_BUCKET_BYTES)";
}

}  // namespace

std::vector<int64_t> LayoutRow(int rank, int32_t dtype, const BucketPlan& plan) {
  std::vector<int64_t> row = {rank, dtype, static_cast<int64_t>(plan.views.size()),
                              static_cast<int64_t>(plan.chunks.size())};
  for (const BucketView& view : plan.views) row.push_back(static_cast<int64_t>(view.count));
  for (const BucketChunk& chunk : plan.chunks) row.push_back(static_cast<int64_t>(chunk.tensors));
  return row;
}

LayoutComparison CompareLayouts(absl::Span<const int64_t> rows) {
  LayoutComparison made;
  Layout first, next;
  while (TakeRow(&rows, &next)) {
    if (made.ranks++ == 0) first = next;
    made.most_chunks = std::max(made.most_chunks, next.chunks.size());
    if (made.difference.empty()) made.difference = Difference({first, next});
  }
  return made;
}

}  // namespace hvd::rt
