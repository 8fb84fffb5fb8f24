// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/execution/neutral.h"

#include <algorithm>
#include <complex>
#include <cstdint>
#include <limits>

namespace hvd::rt {
namespace {

hvd_dtype_t Dtype(const Signature& signature) { return static_cast<hvd_dtype_t>(signature.dtype); }

template <class T>
void Fill(void* elements, size_t count, T value) {
  std::fill_n(static_cast<T*>(elements), count, value);
}

// For the least and the greatest: what loses against everything.
template <class T>
T Loser(bool largest) {
  using Limits = std::numeric_limits<T>;
  if (Limits::has_infinity) return largest ? Limits::infinity() : -Limits::infinity();
  return largest ? Limits::max() : Limits::lowest();
}

template <class T>
void FillAs(const Signature& signature, void* elements, size_t count) {
  using Limits = std::numeric_limits<T>;
  T value = 0;
  if (signature.op == HVD_PRODUCT) value = 1;
  if (signature.op == HVD_BAND && Limits::is_integer) value = static_cast<T>(-1);
  if (signature.op == HVD_MIN) value = Loser<T>(true);
  if (signature.op == HVD_MAX) value = Loser<T>(false);
  Fill<T>(elements, count, value);
}

// The bits of 1, of infinity (of the largest exponent) in a 16-bit float.
void FillSmall(const Signature& signature, void* elements, size_t count) {
  const bool half = Dtype(signature) == HVD_FLOAT16;
  const uint16_t one = half ? 0x3c00 : 0x3f80, infinity = half ? 0x7c00 : 0x7f80;
  uint16_t value = 0;
  if (signature.op == HVD_PRODUCT) value = one;
  if (signature.op == HVD_MIN) value = infinity;
  if (signature.op == HVD_MAX) value = infinity | 0x8000;
  Fill<uint16_t>(elements, count, value);
}

// Likewise of a float of 8 bits; the largest number serves where there is no infinity.
void FillFloat8(const Signature& signature, void* elements, size_t count) {
  const bool e4m3 = Dtype(signature) == HVD_FLOAT8_E4M3FN;
  const uint8_t one = e4m3 ? 0x38 : 0x3c, largest = e4m3 ? 0x7e : 0x7c;
  uint8_t value = 0;
  if (signature.op == HVD_PRODUCT) value = one;
  if (signature.op == HVD_MIN) value = largest;
  if (signature.op == HVD_MAX) value = largest | 0x80;
  Fill<uint8_t>(elements, count, value);
}

template <class Real>
void FillComplex(const Signature& signature, void* elements, size_t count) {
  Fill<std::complex<Real>>(elements, count, signature.op == HVD_PRODUCT ? 1 : 0);
}

void FillBool(const Signature& signature, void* elements, size_t count) {
  const bool is_and =
      signature.op == HVD_MIN || signature.op == HVD_PRODUCT || signature.op == HVD_BAND;
  Fill<uint8_t>(elements, count, is_and ? 1 : 0);
}

}  // namespace

void FillNeutral(const Signature& signature, void* elements, size_t count) {
  switch (Dtype(signature)) {
    case HVD_UINT8:
      return FillAs<uint8_t>(signature, elements, count);
    case HVD_INT8:
      return FillAs<int8_t>(signature, elements, count);
    case HVD_BOOL:
      return FillBool(signature, elements, count);
    case HVD_UINT16:
      return FillAs<uint16_t>(signature, elements, count);
    case HVD_INT16:
      return FillAs<int16_t>(signature, elements, count);
    case HVD_UINT32:
      return FillAs<uint32_t>(signature, elements, count);
    case HVD_INT32:
      return FillAs<int32_t>(signature, elements, count);
    case HVD_UINT64:
      return FillAs<uint64_t>(signature, elements, count);
    case HVD_INT64:
      return FillAs<int64_t>(signature, elements, count);
    case HVD_FLOAT32:
      return FillAs<float>(signature, elements, count);
    case HVD_FLOAT64:
      return FillAs<double>(signature, elements, count);
    case HVD_FLOAT16:
    case HVD_BFLOAT16:
      return FillSmall(signature, elements, count);
    case HVD_FLOAT8_E4M3FN:
    case HVD_FLOAT8_E5M2:
      return FillFloat8(signature, elements, count);
    case HVD_COMPLEX64:
      return FillComplex<float>(signature, elements, count);
    case HVD_COMPLEX128:
      return FillComplex<double>(signature, elements, count);
  }
}

}  // namespace hvd::rt
