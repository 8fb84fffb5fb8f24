// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "runtime/collective/kernels/levels.h"
#include "runtime/collective/kernels/reduce_loop.h"

namespace hvd::rt {
namespace {

struct Avx2 {
  static constexpr size_t kBytes = 32;
  using Tail = CopiedTail;

  struct HalfConvert {
    typedef uint16_t Narrow __attribute__((vector_size(kBytes / 2)));
    typedef float Vector __attribute__((vector_size(kBytes)));
    static Vector Widen(Narrow narrow) {
      return reinterpret_cast<Vector>(_mm256_cvtph_ps(reinterpret_cast<__m128i>(narrow)));
    }
    static Narrow Round(Vector v) {
      return reinterpret_cast<Narrow>(
          _mm256_cvtps_ph(reinterpret_cast<__m256>(v), _MM_FROUND_TO_NEAREST_INT));
    }
  };
};

}  // namespace

ReduceKernel FindAvx2Kernel(hvd_dtype_t dtype, hvd_op_t op) { return FindAtLevel<Avx2>(dtype, op); }

void CopyAvx2(void* to, const void* from, size_t bytes) {
  CopyInVectors<Avx2::kBytes>(to, from, bytes);
}

}  // namespace hvd::rt
