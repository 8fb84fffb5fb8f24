// The one loop behind all reduce kernels, as a template over the instruction level, the element and
// the operation. Included by one .cc a level, each compiled with that level's flags. `Level` is a
// type of that .cc's unnamed namespace, so every instance has internal linkage and the linker can
// never hand a plain processor the AVX-512 version. For the same reason nothing from the standard
// library's templates is called here.
//
// A tail is copied into a padded vector and goes through the same instructions as the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "runtime/collective/kernels/reduce_kernels.h"

#define HVD_INLINE inline __attribute__((always_inline))

namespace hvd {

template <class Level, class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(Level::kBytes)));
  static constexpr size_t kLanes = Level::kBytes / sizeof(T);
};

// Elements: how T lies in memory, what it is combined in, how it is divided.
template <class Level, class T>
struct PlainElement {
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

template <class Level, class T>
struct FloatElement : PlainElement<Level, T> {
  using Vector = typename PlainElement<Level, T>::Vector;
  static HVD_INLINE void Store(T* to, Vector v) { PlainElement<Level, T>::Store(to, OneNan(v)); }
  static HVD_INLINE Vector Divide(Vector v, int divisor) { return v / static_cast<T>(divisor); }
};

// Sums and products wrap in T (unsigned, where C++ defines it); `Value` says how to read the bits
// when they are compared or divided.
template <class Level, class T, class Value>
struct IntElement : PlainElement<Level, T> {
  using Vector = typename PlainElement<Level, T>::Vector;
  static HVD_INLINE Vector Divide(Vector v, int divisor) {
    T lanes[PlainElement<Level, T>::kLanes];
    memcpy(lanes, &v, sizeof(v));
    for (T& lane : lanes) {
      lane = static_cast<T>(static_cast<int64_t>(static_cast<Value>(lane)) / divisor);
    }
    memcpy(&v, lanes, sizeof(v));
    return v;
  }
};

// One byte: any value but 0 is true.
template <class Level>
struct BoolElement : PlainElement<Level, uint8_t> {
  using Vector = typename PlainElement<Level, uint8_t>::Vector;
  static HVD_INLINE Vector Load(const uint8_t* from) {
    return reinterpret_cast<Vector>(PlainElement<Level, uint8_t>::Load(from) != 0) & 1;
  }
  static HVD_INLINE Vector Divide(Vector v, int) { return v; }
};

// 16-bit floats: combined in float32. `Convert` has Widen(Narrow) and Round(Vector).
template <class Level, class Convert>
struct Float16Element {
  using Stored = uint16_t;
  using Vector = typename VectorOf<Level, float>::type;
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
  static HVD_INLINE Vector Divide(Vector v, int divisor) { return v / static_cast<float>(divisor); }
};

// The processors' own bfloat16 instructions flush denormals, so all levels round by integer
// arithmetic instead; memory is slower than either.
template <class Level>
struct BfloatConvert {
  using Vector = typename VectorOf<Level, float>::type;
  using Bits = typename VectorOf<Level, uint32_t>::type;
  typedef uint16_t Narrow __attribute__((vector_size(Level::kBytes / 2)));

  static HVD_INLINE Vector Widen(Narrow narrow) {
    return reinterpret_cast<Vector>(__builtin_convertvector(narrow, Bits) << 16);
  }
  static HVD_INLINE Narrow Round(Vector v) {
    const Bits bits = reinterpret_cast<Bits>(v);
    const Bits nearest = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    const Bits quiet_nan = (bits >> 16) | 0x40;
    const Bits is_nan = reinterpret_cast<Bits>(v != v);
    return __builtin_convertvector((nearest & ~is_nan) | (quiet_nan & is_nan), Narrow);
  }
};

// Operations. Min and Max take b when it is smaller (greater), or a NaN where a is none.
struct SumOp {
  template <class Vector>
  static HVD_INLINE Vector Apply(Vector a, Vector b) {
    return a + b;
  }
};
struct ProductOp {
  template <class Vector>
  static HVD_INLINE Vector Apply(Vector a, Vector b) {
    return a * b;
  }
};
struct OrOp {
  template <class Vector>
  static HVD_INLINE Vector Apply(Vector a, Vector b) {
    return a | b;
  }
};
struct AndOp {
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
  template <class Vector>
  static HVD_INLINE Vector Apply(Vector a, Vector b) {
    const auto take_b = ~(b >= a) & (a == a);
    return Select<decltype(take_b)>(take_b, a, b);
  }
};
struct MaxOp {
  template <class Vector>
  static HVD_INLINE Vector Apply(Vector a, Vector b) {
    const auto take_b = ~(b <= a) & (a == a);
    return Select<decltype(take_b)>(take_b, a, b);
  }
};

// `kVectors` vectors of all sources from element `at` on, combined and stored.
template <class Element, class Op, int kVectors>
HVD_INLINE void ReduceBlock(const ReduceTask& task, size_t at) {
  using Stored = typename Element::Stored;
  typename Element::Vector sum[kVectors];
  const auto* first = static_cast<const Stored*>(task.sources[0]) + at;
  for (int v = 0; v < kVectors; ++v) sum[v] = Element::Load(first + v * Element::kLanes);
  for (int s = 1; s < task.source_count; ++s) {
    const auto* source = static_cast<const Stored*>(task.sources[s]) + at;
    for (int v = 0; v < kVectors; ++v) {
      sum[v] = Op::Apply(sum[v], Element::Load(source + v * Element::kLanes));
    }
  }
  if (task.divisor != 1) {
    for (int v = 0; v < kVectors; ++v) sum[v] = Element::Divide(sum[v], task.divisor);
  }
  for (int d = 0; d < task.destination_count; ++d) {
    auto* destination = static_cast<Stored*>(task.destinations[d]) + at;
    for (int v = 0; v < kVectors; ++v) {
      Element::Store(destination + v * Element::kLanes, sum[v]);
    }
  }
}

// The last elements, fewer than a vector.
template <class Element, class Op>
HVD_INLINE void ReduceTail(const ReduceTask& task, size_t at) {
  using Stored = typename Element::Stored;
  const size_t bytes = (task.count - at) * sizeof(Stored);
  Stored padded[Element::kLanes] = {};
  memcpy(padded, static_cast<const Stored*>(task.sources[0]) + at, bytes);
  typename Element::Vector sum = Element::Load(padded);
  for (int s = 1; s < task.source_count; ++s) {
    memcpy(padded, static_cast<const Stored*>(task.sources[s]) + at, bytes);
    sum = Op::Apply(sum, Element::Load(padded));
  }
  if (task.divisor != 1) sum = Element::Divide(sum, task.divisor);
  Element::Store(padded, sum);
  for (int d = 0; d < task.destination_count; ++d) {
    memcpy(static_cast<Stored*>(task.destinations[d]) + at, padded, bytes);
  }
}

template <class Element, class Op>
void Reduce(const ReduceTask& task) {
  constexpr int kVectors = 4;
  constexpr size_t kBlock = kVectors * Element::kLanes;
  size_t at = 0;
  for (; at + kBlock <= task.count; at += kBlock) ReduceBlock<Element, Op, kVectors>(task, at);
  for (; at + Element::kLanes <= task.count; at += Element::kLanes) {
    ReduceBlock<Element, Op, 1>(task, at);
  }
  if (at < task.count) ReduceTail<Element, Op>(task, at);
}

// Wrapping is the unsigned element's; order and division are the type's own.
template <class Level, class T, class Unsigned>
ReduceKernel FindForInt(hvd_op_t op) {
  using Ring = IntElement<Level, Unsigned, T>;
  using Ordered = IntElement<Level, T, T>;
  switch (op) {
    case HVD_AVERAGE:
    case HVD_SUM:
      return Reduce<Ring, SumOp>;
    case HVD_PRODUCT:
      return Reduce<Ring, ProductOp>;
    case HVD_MIN:
      return Reduce<Ordered, MinOp>;
    case HVD_MAX:
      return Reduce<Ordered, MaxOp>;
    case HVD_ADASUM:
      return nullptr;
  }
  return nullptr;
}

template <class Element>
ReduceKernel FindForFloat(hvd_op_t op) {
  switch (op) {
    case HVD_AVERAGE:
    case HVD_SUM:
      return Reduce<Element, SumOp>;
    case HVD_PRODUCT:
      return Reduce<Element, ProductOp>;
    case HVD_MIN:
      return Reduce<Element, MinOp>;
    case HVD_MAX:
      return Reduce<Element, MaxOp>;
    case HVD_ADASUM:
      return nullptr;
  }
  return nullptr;
}

template <class Level>
ReduceKernel FindForBool(hvd_op_t op) {
  switch (op) {
    case HVD_SUM:
    case HVD_MAX:
      return Reduce<BoolElement<Level>, OrOp>;
    case HVD_PRODUCT:
    case HVD_MIN:
      return Reduce<BoolElement<Level>, AndOp>;
    case HVD_AVERAGE:
    case HVD_ADASUM:
      return nullptr;
  }
  return nullptr;
}

template <class Level>
ReduceKernel FindAtLevel(hvd_dtype_t dtype, hvd_op_t op) {
  switch (dtype) {
    case HVD_UINT8:
      return FindForInt<Level, uint8_t, uint8_t>(op);
    case HVD_INT8:
      return FindForInt<Level, int8_t, uint8_t>(op);
    case HVD_INT16:
      return FindForInt<Level, int16_t, uint16_t>(op);
    case HVD_INT32:
      return FindForInt<Level, int32_t, uint32_t>(op);
    case HVD_INT64:
      return FindForInt<Level, int64_t, uint64_t>(op);
    case HVD_FLOAT16:
      return FindForFloat<Float16Element<Level, typename Level::HalfConvert>>(op);
    case HVD_BFLOAT16:
      return FindForFloat<Float16Element<Level, BfloatConvert<Level>>>(op);
    case HVD_FLOAT32:
      return FindForFloat<FloatElement<Level, float>>(op);
    case HVD_FLOAT64:
      return FindForFloat<FloatElement<Level, double>>(op);
    case HVD_BOOL:
      return FindForBool<Level>(op);
  }
  return nullptr;
}

}  // namespace hvd

#undef HVD_INLINE
