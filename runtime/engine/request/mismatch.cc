// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/request/mismatch.h"

#include <algorithm>

#include "base/printable.h"

namespace hvd::rt {
namespace {

// Rows of an allgather or alltoall are each rank's own business.
bool RowsMayDiffer(const Signature& signature) {
  return !signature.is_group() &&
         (signature.kind == RequestKind::kAllgather || signature.kind == RequestKind::kAlltoall);
}

bool ShapesAgree(const Signature& a, const Signature& b) {
  if (a.ndim != b.ndim) return false;
  for (int d = RowsMayDiffer(a) ? 1 : 0; d < a.ndim; ++d) {
    if (a.shape[d] != b.shape[d]) return false;
  }
  return true;
}

bool IsProcessSetChange(const Signature& signature) {
  return signature.kind == RequestKind::kAddProcessSet ||
         signature.kind == RequestKind::kRemoveProcessSet;
}

const char* ShapeDifference(const Signature& a, const Signature& b) {
  if (IsProcessSetChange(a)) return "process sets";
  if (a.group_count != b.group_count) return "numbers of tensors";
  if (a.group_types != b.group_types) return "numbers of types";
  if (a.is_group()) return "shapes or types of the group's tensors";
  if (a.ndim != b.ndim) return "numbers of dimensions";
  return RowsMayDiffer(a) ? "shapes beyond the first dimension" : "shapes";
}

// Says what differs, in the order in which a user would look.
const char* Difference(const Signature& a, const Signature& b) {
  if (a.kind != b.kind) return "operations";
  if (a.dtype != b.dtype) return "dtypes";
  if (a.device_type != b.device_type) return "devices";
  if (!ShapesAgree(a, b) || a.group_count != b.group_count || a.group_types != b.group_types ||
      a.group_hash != b.group_hash) {
    return ShapeDifference(a, b);
  }
  if (a.op != b.op) return "reduction ops";
  if (a.prescale != b.prescale) return "prescale factors";
  if (a.postscale != b.postscale) return "postscale factors";
  if (a.compression != b.compression) return "compressions";
  if (a.refuses_joined != b.refuses_joined) return "flags";
  return "roots";
}

constexpr size_t kMostContents = 4096;  // bytes in a message

// The requests look alike, and the ranks say that they are for different tensors.
bool OnlyContentsDiffer(const Signature& a, const Signature& b) {
  Signature like = b;
  like.contents = a.contents;
  return Compatible(a, like);
}

std::string ContentsText(std::string_view name, const Asker& low, const Asker& high) {
  return "tensor " + ShownName(name) + ": ranks " + std::to_string(low.rank) + " and " +
         std::to_string(high.rank) + " give different tensors, by their names or their order, to " +
         Describe(low.signature) +
         ". Nothing was exchanged; make all ranks give the same ones in the same order";
}

}  // namespace

bool Compatible(const Signature& a, const Signature& b) {
  return a.kind == b.kind && a.dtype == b.dtype && a.op == b.op && a.root == b.root &&
         a.device_type == b.device_type && a.group_count == b.group_count &&
         a.group_types == b.group_types && a.group_hash == b.group_hash &&
         a.prescale == b.prescale && a.postscale == b.postscale && a.compression == b.compression &&
         a.refuses_joined == b.refuses_joined && a.contents == b.contents && ShapesAgree(a, b);
}

std::string MismatchText(std::string_view name, const Asker& a, const Asker& b) {
  const Asker& low = a.rank <= b.rank ? a : b;
  const Asker& high = a.rank <= b.rank ? b : a;
  if (OnlyContentsDiffer(a.signature, b.signature)) return ContentsText(name, low, high);
  return "tensor " + ShownName(name) + ": ranks ask for different " +
         Difference(a.signature, b.signature) + ": rank " + std::to_string(low.rank) +
         " asked for " + Describe(low.signature) + ", rank " + std::to_string(high.rank) + " for " +
         Describe(high.signature) +
         ". Nothing was exchanged; make all ranks ask for the same under one name";
}

std::string WithContents(std::string_view mismatch, std::string_view contents) {
  std::string text(mismatch);
  if (!contents.empty()) text += ". This rank gives: " + Printable(contents, kMostContents);
  return text;
}

}  // namespace hvd::rt
