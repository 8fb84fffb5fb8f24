// SPDX-License-Identifier: Apache-2.0
#include "runtime/bucket/copy.h"

#include <algorithm>
#include <cstdint>

#include "runtime/check/check_tensor.h"
#include "runtime/collective/collectives.h"
#include "runtime/collective/kernels/copy.h"
#include "runtime/collective/narrow.h"

namespace hvd::rt {
namespace {

bool IsNarrow(hvd_dtype_t dtype) { return dtype == HVD_FLOAT16 || dtype == HVD_BFLOAT16; }
bool IsWide(hvd_dtype_t dtype) { return dtype == HVD_FLOAT32 || dtype == HVD_FLOAT64; }

struct Source {
  const void* data;
  hvd_dtype_t dtype;
};

template <class From, class To>
void CastLoop(const void* from, void* to, size_t count) {
  const auto* source = static_cast<const From*>(from);
  std::transform(source, source + count, static_cast<To*>(to),
                 [](From value) { return static_cast<To>(value); });
}

// By way of float32, which has all values of both.
void CopyNarrow(const Source& from, const CopyTarget& to) {
  constexpr size_t kPiece = 1024;
  float piece[kPiece];
  const auto* source = static_cast<const uint16_t*>(from.data);
  auto* target = static_cast<uint16_t*>(to.data);
  for (size_t at = 0; at < to.count; at += kPiece) {
    const size_t count = std::min(kPiece, to.count - at);
    Widen({HVD_FLOAT32, from.dtype}, source + at, piece, count);
    Narrow({HVD_FLOAT32, to.dtype}, piece, target + at, count);
  }
}

void Convert(const Source& from, const CopyTarget& to) {
  if (IsWide(from.dtype) && IsWide(to.dtype)) {
    return from.dtype == HVD_FLOAT64 ? CastLoop<double, float>(from.data, to.data, to.count)
                                     : CastLoop<float, double>(from.data, to.data, to.count);
  }
  if (IsWide(from.dtype)) {
    return Narrow({from.dtype, to.dtype}, from.data, static_cast<uint16_t*>(to.data), to.count);
  }
  if (IsNarrow(to.dtype)) return CopyNarrow(from, to);
  Widen({to.dtype, from.dtype}, static_cast<const uint16_t*>(from.data), to.data, to.count);
}

}  // namespace

absl::Status CheckSource(const hvd_tensor_t& source, const CopyTarget& target,
                         const std::string& what) {
  if (absl::Status checked = CheckTensor(&source, "source"); !checked.ok()) return checked;
  if (absl::Status checked = CheckData(source, "source"); !checked.ok()) return checked;
  if (ElementsOf(source) == target.count) return absl::OkStatus();
  return absl::InvalidArgumentError("source has " + std::to_string(ElementsOf(source)) +
                                    " elements, " + what + " has " + std::to_string(target.count));
}

absl::Status CopyConverted(const hvd_tensor_t& source, const CopyTarget& target,
                           const std::string& what) {
  if (absl::Status checked = CheckTensor(&source, "source"); !checked.ok()) return checked;
  if (source.device_type != HVD_CPU) {
    return absl::InvalidArgumentError("source lies " + PlaceOf(source) +
                                      "; the bucket lies in the CPU's memory");
  }
  if (absl::Status fits = CheckSource(source, target, what); !fits.ok()) return fits;
  const Source from = {source.data, static_cast<hvd_dtype_t>(source.dtype)};
  if (from.dtype == target.dtype) {
    if (from.data != target.data) {
      CopyBytes(target.data, from.data, target.count * DtypeBytes(target.dtype));
    }
    return absl::OkStatus();
  }
  if ((!IsWide(from.dtype) && !IsNarrow(from.dtype)) ||
      (!IsWide(target.dtype) && !IsNarrow(target.dtype))) {
    return absl::InvalidArgumentError(
        std::string("source is of ") + DtypeName(from.dtype) + ", " + what + " of " +
        DtypeName(target.dtype) + "; only float16, bfloat16, float32 and float64 are converted");
  }
  Convert(from, target);
  return absl::OkStatus();
}

}  // namespace hvd::rt
