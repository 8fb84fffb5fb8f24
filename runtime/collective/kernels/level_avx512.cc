#include <immintrin.h>

#include "runtime/collective/kernels/levels.h"
#include "runtime/collective/kernels/reduce_loop.h"

namespace hvd {
namespace {

struct Avx512 {
  static constexpr size_t kBytes = 64;

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

}  // namespace hvd
