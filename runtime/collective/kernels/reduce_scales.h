// SPDX-License-Identifier: Apache-2.0
// The parts of the reduce kernels: scales, of the sources before they are combined, and of the
// result. The rules of reduce_loop.h hold here too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "runtime/collective/kernels/int_average.h"
#include "runtime/collective/kernels/reduce_kernels.h"
#include "runtime/collective/kernels/reduce_vectors.h"

namespace hvd::rt {

static HVD_INLINE bool IsPowerOfTwo(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof(bits));
  return (bits & ((uint64_t{1} << 52) - 1)) == 0;
}

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

// Apply scales to a vector and to a pair.
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

}  // namespace hvd::rt
