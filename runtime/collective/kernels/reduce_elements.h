// SPDX-License-Identifier: Apache-2.0
// The parts of the reduce kernels: elements (how a type lies in memory, what it is combined in, how
// it is scaled) and operations. Included by reduce_loop.h alone, whose rules hold here too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "runtime/collective/kernels/float_rules.h"
#include "runtime/collective/kernels/int_average.h"
#include "runtime/collective/kernels/reduce_kernels.h"

#define HVD_INLINE inline __attribute__((always_inline))

namespace hvd {

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

static HVD_INLINE bool IsPowerOfTwo(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof(bits));
  return (bits & ((uint64_t{1} << 52) - 1)) == 0;
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

// The numbers that a result is multiplied by and divided by: a divisor whose inverse is not exact
// stays one as long as nothing else rounds. A result that is combined in more digits than its type
// has is divided first, then rounded, and `last` multiplies what a program would find: but a power
// of two changes no digit.
struct ResultFactors {
  double factor;
  int divisor = 1;
  double last = 1;

  HVD_INLINE ResultFactors(const ReduceTask& task, bool has_all_digits) : factor(task.postscale) {
    if (!has_all_digits && !IsPowerOfTwo(factor)) {
      last = factor;
      factor = 1;
    }
    if (IsPowerOfTwo(task.divisor) || !IsPowerOfTwo(factor)) {
      factor /= task.divisor;
    } else {
      divisor = task.divisor;
    }
  }
};

// Scales of the result alone, in the type that floats are combined in.
template <class Element>
struct ResultScales {
  using Real = typename Element::Real;
  Real factor;
  Real divisor;

  explicit HVD_INLINE ResultScales(const ReduceTask& task) {
    const ResultFactors of(task, Element::Digits::kAreAll);
    factor = static_cast<Real>(of.factor);
    divisor = static_cast<Real>(of.divisor);
  }
  template <class Vector>
  HVD_INLINE Vector Before(Vector v, int) const {
    return v;
  }
  // Divided first, since the product could be too large.
  template <class Vector>
  HVD_INLINE Vector After(Vector v) const {
    if (divisor != 1) v = v / divisor;
    return factor != 1 ? v * factor : v;
  }
};

// Scales of each source too.
template <class Element>
struct AllScales : ResultScales<Element> {
  using Real = typename Element::Real;
  Real before;
  int prescaled;

  explicit HVD_INLINE AllScales(const ReduceTask& task)
      : ResultScales<Element>(task),
        before(static_cast<Real>(task.prescale)),
        prescaled(task.prescaled) {}
  template <class Vector>
  HVD_INLINE Vector Before(Vector v, int source) const {
    return source >= prescaled ? v * before : v;
  }
};

// All scales of elements that have fewer digits in memory than what they are combined in.
template <class Element>
struct RoundedScales : AllScales<Element> {
  using Real = typename Element::Real;
  Real last;

  explicit HVD_INLINE RoundedScales(const ReduceTask& task)
      : AllScales<Element>(task),
        last(static_cast<Real>(ResultFactors(task, Element::Digits::kAreAll).last)) {}
  // Whether a scale is no power of two.
  static HVD_INLINE bool Needed(const ReduceTask& task) {
    return !IsPowerOfTwo(task.prescale) || ResultFactors(task, Element::Digits::kAreAll).last != 1;
  }
  template <class Vector>
  HVD_INLINE Vector Before(Vector v, int source) const {
    if (source < this->prescaled || this->before == 1) return v;
    return Element::Digits::Round(AllScales<Element>::Before(v, source));
  }
  template <class Vector>
  HVD_INLINE Vector After(Vector v) const {
    v = AllScales<Element>::After(v);
    return last != 1 ? Element::Digits::Round(v) * last : v;
  }
};

// The same by products in double, for scales that are no float32.
template <class Element>
struct FarScales {
  double before;
  int prescaled;
  ResultFactors after;

  explicit HVD_INLINE FarScales(const ReduceTask& task)
      : before(task.prescale), prescaled(task.prescaled), after(task, Element::Digits::kAreAll) {}
  static HVD_INLINE bool IsFar(double scale) {
    const double size = scale < 0 ? -scale : scale;
    return size > __FLT_MAX__ || (size < __FLT_MIN__ && size != 0);
  }
  static HVD_INLINE bool Needed(const ReduceTask& task) {
    const ResultFactors of(task, Element::Digits::kAreAll);
    return IsFar(task.prescale) || IsFar(of.factor) || IsFar(of.last);
  }
  template <class Vector>
  HVD_INLINE Vector Before(Vector v, int source) const {
    return source >= prescaled ? Element::Digits::Round(Times(v, before)) : v;
  }
  template <class Vector>
  HVD_INLINE Vector After(Vector v) const {
    v = Times(v, after.factor / after.divisor);
    return after.last == 1 ? v : Times(Element::Digits::Round(v), after.last);
  }

 private:
  template <class Vector>
  static HVD_INLINE Vector Times(Vector v, double scale) {
    typedef double Doubles __attribute__((vector_size(2 * sizeof(Vector))));
    return __builtin_convertvector(__builtin_convertvector(v, Doubles) * scale, Vector);
  }
};

template <class Level, class T>
struct FloatElement : PlainElement<Level, T> {
  using Vector = typename PlainElement<Level, T>::Vector;
  using Real = T;
  using Digits = AllDigits;
  static HVD_INLINE void Store(T* to, Vector v) { PlainElement<Level, T>::Store(to, OneNan(v)); }
};

template <class Vector, class Value>
struct IntScales {
  double before;
  double after;
  int divisor;
  int prescaled;

  explicit HVD_INLINE IntScales(const ReduceTask& task)
      : before(task.prescale),
        after(task.postscale),
        divisor(task.divisor),
        prescaled(task.prescaled) {}
  HVD_INLINE Vector Before(Vector v, int source) const {
    if (before == 1 || source < prescaled) return v;
    return ForEachLane(v, [this](Value x) { return TruncateScaled(x * before); });
  }
  HVD_INLINE Vector After(Vector v) const {
    if (after != 1) {
      return ForEachLane(v, [this](Value x) { return TruncateScaled(x * after / divisor); });
    }
    if (divisor == 1) return v;
    return ForEachLane(v, [this](Value x) { return static_cast<int64_t>(x) / divisor; });
  }

 private:
  template <class F>
  static HVD_INLINE Vector ForEachLane(Vector v, const F& f) {
    Value lanes[sizeof(Vector) / sizeof(Value)];
    memcpy(lanes, &v, sizeof(v));
    for (Value& lane : lanes) lane = static_cast<Value>(f(lane));
    memcpy(&v, lanes, sizeof(v));
    return v;
  }
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

// Apply scales and operations to a vector and to a pair.
template <class Scales, class Vector>
HVD_INLINE Vector Before(const Scales& scales, Vector v, int source) {
  return scales.Before(v, source);
}
template <class Scales, class Vector>
HVD_INLINE PairOf<Vector> Before(const Scales& scales, PairOf<Vector> v, int source) {
  return {scales.Before(v.even, source), scales.Before(v.odd, source)};
}
template <class Scales, class Vector>
HVD_INLINE Vector After(const Scales& scales, Vector v) {
  return scales.After(v);
}
template <class Scales, class Vector>
HVD_INLINE PairOf<Vector> After(const Scales& scales, PairOf<Vector> v) {
  return {scales.After(v.even), scales.After(v.odd)};
}
template <class Op, class Vector>
HVD_INLINE Vector Apply(Vector a, Vector b) {
  return Op::Apply(a, b);
}
template <class Op, class Vector>
HVD_INLINE PairOf<Vector> Apply(PairOf<Vector> a, PairOf<Vector> b) {
  return {Op::Apply(a.even, b.even), Op::Apply(a.odd, b.odd)};
}

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

}  // namespace hvd
