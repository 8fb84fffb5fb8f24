// SPDX-License-Identifier: Apache-2.0
// The parts of the reduce kernels: a level's vectors, alone and in pairs, and the operations on
// them. The rules of reduce_loop.h hold here too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#define HVD_INLINE inline __attribute__((always_inline))

namespace hvd::rt {

template <class Level, class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(Level::kBytes)));
  static constexpr size_t kLanes = Level::kBytes / sizeof(T);
};

// Fewer bytes than a vector has, where the level knows no better.
struct CopiedTail {
  static HVD_INLINE void Load(void* padded, const void* from, size_t bytes) {
    memcpy(padded, from, bytes);
  }
  static HVD_INLINE void Store(void* to, const void* padded, size_t bytes) {
    memcpy(to, padded, bytes);
  }
};

template <class Vector>
struct PairOf {
  Vector even;
  Vector odd;
};

// Operations. Min and Max take b when it is smaller (greater), or a NaN where a is none.
struct SumOp {
  static constexpr bool kIsSum = true;
  template <class Vector>
  static HVD_INLINE Vector Apply(Vector a, Vector b) {
    return a + b;
  }
};
struct ProductOp {
  static constexpr bool kIsSum = false;
  template <class Vector>
  static HVD_INLINE Vector Apply(Vector a, Vector b) {
    return a * b;
  }
};
struct OrOp {
  static constexpr bool kIsSum = false;
  template <class Vector>
  static HVD_INLINE Vector Apply(Vector a, Vector b) {
    return a | b;
  }
};
struct AndOp {
  static constexpr bool kIsSum = false;
  template <class Vector>
  static HVD_INLINE Vector Apply(Vector a, Vector b) {
    return a & b;
  }
};
template <class Bits, class Vector>
HVD_INLINE Vector Select(Bits take_b, Vector a, Vector b) {
  return reinterpret_cast<Vector>((reinterpret_cast<Bits>(a) & ~take_b) |
                                  (reinterpret_cast<Bits>(b) & take_b));
}
struct MinOp {
  static constexpr bool kIsSum = false;
  template <class Vector>
  static HVD_INLINE Vector Apply(Vector a, Vector b) {
    const auto take_b = ~(b >= a) & (a == a);
    return Select<decltype(take_b)>(take_b, a, b);
  }
};
struct MaxOp {
  static constexpr bool kIsSum = false;
  template <class Vector>
  static HVD_INLINE Vector Apply(Vector a, Vector b) {
    const auto take_b = ~(b <= a) & (a == a);
    return Select<decltype(take_b)>(take_b, a, b);
  }
};

// On a vector, and on a pair.
template <class Op, class Vector>
HVD_INLINE Vector Apply(Vector a, Vector b) {
  return Op::Apply(a, b);
}
template <class Op, class Vector>
HVD_INLINE PairOf<Vector> Apply(PairOf<Vector> a, PairOf<Vector> b) {
  return {Op::Apply(a.even, b.even), Op::Apply(a.odd, b.odd)};
}

}  // namespace hvd::rt
