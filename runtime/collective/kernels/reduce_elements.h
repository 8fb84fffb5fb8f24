// SPDX-License-Identifier: Apache-2.0
// The parts of the reduce kernels: elements (how a type lies in memory, what it is combined in, how
// it is scaled). The rules of reduce_loop.h hold here too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "runtime/collective/kernels/reduce_scales.h"
#include "runtime/collective/kernels/reduce_vectors.h"

namespace hvd::rt {

// Elements: how T lies in memory, what it is combined in, how it is scaled.
template <class Level, class T>
struct PlainElement {
  using AtLevel = Level;
  using Stored = T;
  using Vector = typename VectorOf<Level, T>::type;
  static constexpr size_t kLanes = VectorOf<Level, T>::kLanes;

  static HVD_INLINE Vector Load(const Stored* from) {
    Vector v;
    memcpy(&v, from, sizeof(v));
    return v;
  }
  static HVD_INLINE void Store(Stored* to, Vector v) { memcpy(to, &v, sizeof(v)); }
};

// Which of two NaNs a sum keeps depends on the order of an instruction's operands, which compilers
// swap as they like: so a NaN that comes out is always the same one.
template <class Vector>
HVD_INLINE Vector OneNan(Vector v) {
  using Bits = decltype(v == v);
  const Bits ordered = v == v;
  const Vector nan = Vector{} + __builtin_nanf("");
  return reinterpret_cast<Vector>((reinterpret_cast<Bits>(v) & ordered) |
                                  (reinterpret_cast<Bits>(nan) & ~ordered));
}

// Keeps all but the lowest `kDropped` bits, to nearest even; what is dropped stays as it falls.
// REQUIRES: these bits of a NaN are 0, so that it carries nothing.
template <int kDropped, class Bits>
HVD_INLINE Bits RoundBits(Bits bits) {
  constexpr uint32_t kBelowHalf = (uint32_t{1} << (kDropped - 1)) - 1;
  return bits + kBelowHalf + ((bits >> kDropped) & 1);
}

// float32 numbers with as many digits as a shorter type has, whatever their size. NaNs come from
// numbers of that type, or are an instruction's own.
template <class Level, int kDropped>
struct ShortDigits {
  static constexpr bool kAreAll = false;
  using Floats = typename VectorOf<Level, float>::type;
  using Bits = typename VectorOf<Level, uint32_t>::type;

  static HVD_INLINE Floats Round(Floats v) {
    constexpr uint32_t kKept = ~((uint32_t{1} << kDropped) - 1);
    return reinterpret_cast<Floats>(RoundBits<kDropped>(reinterpret_cast<Bits>(v)) & kKept);
  }
};
// Numbers that are combined in the type that they lie in memory in.
struct AllDigits {
  static constexpr bool kAreAll = true;
  template <class Vector>
  static HVD_INLINE Vector Round(Vector v) {
    return v;
  }
};

template <class Level, class T>
struct FloatElement : PlainElement<Level, T> {
  using Vector = typename PlainElement<Level, T>::Vector;
  using Real = T;
  using Digits = AllDigits;
  static HVD_INLINE void Store(T* to, Vector v) { PlainElement<Level, T>::Store(to, OneNan(v)); }
};

// Sums and products wrap in T (unsigned, where C++ defines it); `Value` says how to read the bits
// when they are compared, scaled or divided.
template <class Level, class T, class Value>
struct IntElement : PlainElement<Level, T> {
  using Scales = IntScales<typename PlainElement<Level, T>::Vector, Value>;
};

// One byte: any value but 0 is true.
template <class Level>
struct BoolElement : PlainElement<Level, uint8_t> {
  using Vector = typename PlainElement<Level, uint8_t>::Vector;
  static HVD_INLINE Vector Load(const uint8_t* from) {
    return reinterpret_cast<Vector>(PlainElement<Level, uint8_t>::Load(from) != 0) & 1;
  }
  // REQUIRES: nothing to scale by.
  struct Scales {
    explicit HVD_INLINE Scales(const ReduceTask&) {}
    static HVD_INLINE Vector Before(Vector v, int) { return v; }
    static HVD_INLINE Vector After(Vector v) { return v; }
  };
};

// float16: combined in float32. The level's HalfConvert has Widen(Narrow) and Round(Vector).
template <class Level>
struct Float16Element {
  using AtLevel = Level;
  using Convert = typename Level::HalfConvert;
  using Stored = uint16_t;
  using Vector = typename VectorOf<Level, float>::type;
  using Real = float;
  using Digits = ShortDigits<Level, 13>;
  typedef uint16_t Narrow __attribute__((vector_size(Level::kBytes / 2)));
  static constexpr size_t kLanes = VectorOf<Level, float>::kLanes;

  static HVD_INLINE Vector Load(const Stored* from) {
    Narrow narrow;
    memcpy(&narrow, from, sizeof(narrow));
    return Convert::Widen(narrow);
  }
  static HVD_INLINE void Store(Stored* to, Vector v) {
    const Narrow narrow = Convert::Round(OneNan(v));
    memcpy(to, &narrow, sizeof(narrow));
  }
};

// bfloat16: combined in float32. Two lie in each 32 bits and are taken apart in place, the even
// ones and the odd ones, so that nothing has to be moved between lanes. The processors' own
// bfloat16 instructions flush denormals, so all levels round by integer arithmetic instead.
template <class Level>
struct BfloatElement {
  using AtLevel = Level;
  using Stored = uint16_t;
  using Floats = typename VectorOf<Level, float>::type;
  using Bits = typename VectorOf<Level, uint32_t>::type;
  using Vector = PairOf<Floats>;
  using Real = float;
  using Digits = ShortDigits<Level, 16>;
  static constexpr size_t kLanes = VectorOf<Level, uint16_t>::kLanes;

  static HVD_INLINE Vector Load(const Stored* from) {
    Bits both;
    memcpy(&both, from, sizeof(both));
    return {reinterpret_cast<Floats>(both << 16), reinterpret_cast<Floats>(both & kOdd)};
  }
  static HVD_INLINE void Store(Stored* to, Vector v) {
    const Bits both = (Round(v.even) >> 16) | (Round(v.odd) & kOdd);
    memcpy(to, &both, sizeof(both));
  }

 private:
  static constexpr uint32_t kOdd = 0xffff0000;

  // In the upper half.
  static HVD_INLINE Bits Round(Floats v) {
    return RoundBits<16>(reinterpret_cast<Bits>(OneNan(v)));
  }
};

}  // namespace hvd::rt
