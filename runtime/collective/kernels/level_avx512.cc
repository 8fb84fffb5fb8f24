// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "runtime/collective/kernels/levels.h"
#include "runtime/collective/kernels/reduce_loop.h"

namespace hvd::rt {
namespace {

struct Avx512 {
  static constexpr size_t kBytes = 64;

  // In one instruction each: the processor forwards a whole store to a load, and parts of it not.
  struct Tail {
    static void Load(void* padded, const void* from, size_t bytes) {
      _mm512_store_si512(padded, _mm512_maskz_loadu_epi8(First(bytes), from));
    }
    static void Store(void* to, const void* padded, size_t bytes) {
      _mm512_mask_storeu_epi8(to, First(bytes), _mm512_load_si512(padded));
    }

   private:
    // REQUIRES: bytes < kBytes.
    static __mmask64 First(size_t bytes) { return (__mmask64{1} << bytes) - 1; }
  };

  struct HalfConvert {
    typedef uint16_t Narrow __attribute__((vector_size(kBytes / 2)));
    typedef float Vector __attribute__((vector_size(kBytes)));
    static Vector Widen(Narrow narrow) {
      // The masked form, since g++ 12 warns of its own header in the plain one.
      return reinterpret_cast<Vector>(
          _mm512_maskz_cvtph_ps(0xffff, reinterpret_cast<__m256i>(narrow)));
    }
    static Narrow Round(Vector v) {
      return reinterpret_cast<Narrow>(
          _mm512_maskz_cvtps_ph(0xffff, reinterpret_cast<__m512>(v), _MM_FROUND_TO_NEAREST_INT));
    }
  };
};

}  // namespace

ReduceKernel FindAvx512Kernel(hvd_dtype_t dtype, hvd_op_t op) {
  return FindAtLevel<Avx512>(dtype, op);
}

void CopyAvx512(void* to, const void* from, size_t bytes) {
  CopyInVectors<Avx512::kBytes>(to, from, bytes);
}

}  // namespace hvd::rt
