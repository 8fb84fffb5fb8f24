// SPDX-License-Identifier: Apache-2.0
// The one loop behind all reduce kernels, as a template over the instruction level, the element and
// the operation. Included by one .cc a level, each compiled with that level's flags. `Level` is a
// type of that .cc's unnamed namespace, so every instance has internal linkage and the linker can
// never hand a plain processor the AVX-512 version. For the same reason nothing from the standard
// library's templates is called here.
//
// A tail is read into a padded vector and goes through the same instructions as the rest.
#pragma once

#include "runtime/collective/kernels/float_rules.h"
#include "runtime/collective/kernels/int_average_loop.h"
#include "runtime/collective/kernels/reduce_elements.h"

namespace hvd::rt {

// Unscaled tasks, the most of them, have a loop of their own.
struct NoScales {
  template <class Vector>
  static HVD_INLINE Vector Before(Vector v, int) {
    return v;
  }
  template <class Vector>
  static HVD_INLINE Vector After(Vector v) {
    return v;
  }
};

// The task's pointers: with the usual counts known to the compiler they stay in registers.
template <class Stored, int kSources, int kDestinations>
struct Operands {
  const Stored* sources[kSources];
  Stored* destinations[kDestinations];

  explicit HVD_INLINE Operands(const ReduceTask& task) {
    for (int s = 0; s < kSources; ++s) sources[s] = static_cast<const Stored*>(task.sources[s]);
    for (int d = 0; d < kDestinations; ++d) {
      destinations[d] = static_cast<Stored*>(task.destinations[d]);
    }
  }
  static constexpr int source_count() { return kSources; }
  static constexpr int destination_count() { return kDestinations; }
  HVD_INLINE const Stored* source(int s) const { return sources[s]; }
  HVD_INLINE Stored* destination(int d) const { return destinations[d]; }
};
template <class Stored>
struct Operands<Stored, 0, 0> {
  const ReduceTask& task;

  explicit HVD_INLINE Operands(const ReduceTask& of) : task(of) {}
  HVD_INLINE int source_count() const { return task.source_count; }
  HVD_INLINE int destination_count() const { return task.destination_count; }
  HVD_INLINE const Stored* source(int s) const {
    return static_cast<const Stored*>(task.sources[s]);
  }
  HVD_INLINE Stored* destination(int d) const { return static_cast<Stored*>(task.destinations[d]); }
};

// `kVectors` vectors of all sources from element `at` on, combined and stored.
template <class Element, class Op, int kVectors, class Operands, class Scales>
HVD_INLINE void ReduceBlock(const Operands& operands, const Scales& scales, size_t at) {
  typename Element::Vector sum[kVectors];
  const auto* first = operands.source(0) + at;
  for (int v = 0; v < kVectors; ++v) {
    sum[v] = Before(scales, Element::Load(first + v * Element::kLanes), 0);
  }
  for (int s = 1; s < operands.source_count(); ++s) {
    const auto* source = operands.source(s) + at;
    for (int v = 0; v < kVectors; ++v) {
      sum[v] = Apply<Op>(sum[v], Before(scales, Element::Load(source + v * Element::kLanes), s));
    }
  }
  for (int v = 0; v < kVectors; ++v) sum[v] = After(scales, sum[v]);
  for (int d = 0; d < operands.destination_count(); ++d) {
    auto* destination = operands.destination(d) + at;
    for (int v = 0; v < kVectors; ++v) {
      Element::Store(destination + v * Element::kLanes, sum[v]);
    }
  }
}

// A few elements, fewer than a vector.
template <class Element, class Op, class Scales>
HVD_INLINE void ReduceRest(const ReduceTask& task, const Scales& scales, size_t at, size_t count) {
  using Stored = typename Element::Stored;
  using Level = typename Element::AtLevel;
  const size_t bytes = count * sizeof(Stored);
  alignas(Level::kBytes) Stored padded[Level::kBytes / sizeof(Stored)] = {};
  Level::Tail::Load(padded, static_cast<const Stored*>(task.sources[0]) + at, bytes);
  typename Element::Vector sum = Before(scales, Element::Load(padded), 0);
  for (int s = 1; s < task.source_count; ++s) {
    Level::Tail::Load(padded, static_cast<const Stored*>(task.sources[s]) + at, bytes);
    sum = Apply<Op>(sum, Before(scales, Element::Load(padded), s));
  }
  Element::Store(padded, After(scales, sum));
  for (int d = 0; d < task.destination_count; ++d) {
    Level::Tail::Store(static_cast<Stored*>(task.destinations[d]) + at, padded, bytes);
  }
}

// From so many elements on it pays to begin where no vector of a destination crosses a cache line.
// Sources and other destinations usually begin at the same place in a line.
constexpr size_t kAlignedFrom = 1024;

// How many come before the first whole vector; none where no element begins with one.
template <class Element>
HVD_INLINE size_t ElementsBeforeVector(const typename Element::Stored* begin) {
  constexpr size_t kWidth = sizeof(typename Element::Stored);
  constexpr size_t kBytes = Element::kLanes * kWidth;  // as they are stored
  const size_t past = reinterpret_cast<uintptr_t>(begin) % kBytes;
  return past % kWidth != 0 ? 0 : (kBytes - past) % kBytes / kWidth;
}

template <class Element, class Op, int kSources, int kDestinations, class Scales>
HVD_INLINE void ReduceAll(const ReduceTask& task, const Scales& scales) {
  constexpr int kVectors = 4;
  constexpr size_t kBlock = kVectors * Element::kLanes;
  const Operands<typename Element::Stored, kSources, kDestinations> operands(task);
  const size_t count = task.count;
  size_t at = 0;
  if (count >= kAlignedFrom) {
    at = ElementsBeforeVector<Element>(operands.destination(0));
    if (at > 0) ReduceRest<Element, Op>(task, scales, 0, at);
  }
  for (; at + kBlock <= count; at += kBlock) {
    ReduceBlock<Element, Op, kVectors>(operands, scales, at);
  }
  for (; at + Element::kLanes <= count; at += Element::kLanes) {
    ReduceBlock<Element, Op, 1>(operands, scales, at);
  }
  if (at < count) ReduceRest<Element, Op>(task, scales, at, count - at);
}

// With two ranks, sums go to one or two places.
template <class Element, class Op, class Scales>
HVD_INLINE void ReduceFew(const ReduceTask& task, const Scales& scales) {
  if (task.source_count == 2 && task.destination_count == 1) {
    return ReduceAll<Element, Op, 2, 1>(task, scales);
  }
  if (task.source_count == 2 && task.destination_count == 2) {
    return ReduceAll<Element, Op, 2, 2>(task, scales);
  }
  ReduceAll<Element, Op, 0, 0>(task, scales);
}

static HVD_INLINE bool IsScaled(const ReduceTask& task) {
  return task.divisor != 1 || task.prescale != 1 || task.postscale != 1;
}

template <class Element, class Op>
void ReduceInts(const ReduceTask& task) {
  const FloatRules rules;
  if (!IsScaled(task)) return ReduceFew<Element, Op>(task, NoScales());
  ReduceAll<Element, Op, 0, 0>(task, typename Element::Scales(task));
}

// Sums, and averages with them, are what is called most: their scales have loops for few operands
// too.
template <class Element, class Op>
HVD_INLINE void ReduceScaled(const ReduceTask& task) {
  using Real = typename Element::Real;
  if constexpr (sizeof(Real) < sizeof(double)) {
    using Far = FarScales<Element>;
    if (Far::Needed(task)) return ReduceAll<Element, Op, 0, 0>(task, Far(task));
  }
  if constexpr (!Element::Digits::kAreAll) {
    using Rounded = RoundedScales<Element>;
    if (Rounded::Needed(task)) return ReduceAll<Element, Op, 0, 0>(task, Rounded(task));
  }
  if constexpr (Op::kIsSum) {
    if (task.prescale == 1) return ReduceFew<Element, Op>(task, ResultScales<Element>(task));
    ReduceFew<Element, Op>(task, AllScales<Element>(task));
  } else {
    ReduceAll<Element, Op, 0, 0>(task, AllScales<Element>(task));
  }
}

template <class Element, class Op>
void ReduceFloats(const ReduceTask& task) {
  const FloatRules rules;
  if (!IsScaled(task)) return ReduceFew<Element, Op>(task, NoScales());
  ReduceScaled<Element, Op>(task);
}

// Wrapping is the unsigned element's; order and division are the type's own.
template <class Level, class T, class Unsigned>
ReduceKernel FindForInt(hvd_op_t op) {
  using Ring = IntElement<Level, Unsigned, T>;
  using Ordered = IntElement<Level, T, T>;
  switch (op) {
    case HVD_AVERAGE:
      return IntAverage<Level, T>::Run;
    case HVD_SUM:
      return ReduceInts<Ring, SumOp>;
    case HVD_PRODUCT:
      return ReduceInts<Ring, ProductOp>;
    case HVD_MIN:
      return ReduceInts<Ordered, MinOp>;
    case HVD_MAX:
      return ReduceInts<Ordered, MaxOp>;
    default:
      return nullptr;
  }
}

template <class Element>
ReduceKernel FindForFloat(hvd_op_t op) {
  switch (op) {
    case HVD_AVERAGE:
    case HVD_SUM:
      return ReduceFloats<Element, SumOp>;
    case HVD_PRODUCT:
      return ReduceFloats<Element, ProductOp>;
    case HVD_MIN:
      return ReduceFloats<Element, MinOp>;
    case HVD_MAX:
      return ReduceFloats<Element, MaxOp>;
    default:
      return nullptr;
  }
}

template <class Level>
ReduceKernel FindForBool(hvd_op_t op) {
  switch (op) {
    case HVD_SUM:
    case HVD_MAX:
      return ReduceInts<BoolElement<Level>, OrOp>;
    case HVD_PRODUCT:
    case HVD_MIN:
      return ReduceInts<BoolElement<Level>, AndOp>;
    case HVD_AVERAGE:
    default:
      return nullptr;
  }
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
      return FindForFloat<Float16Element<Level>>(op);
    case HVD_BFLOAT16:
      return FindForFloat<BfloatElement<Level>>(op);
    case HVD_FLOAT32:
      return FindForFloat<FloatElement<Level, float>>(op);
    case HVD_FLOAT64:
      return FindForFloat<FloatElement<Level, double>>(op);
    case HVD_BOOL:
      return FindForBool<Level>(op);
    default:
      return nullptr;
  }
}

}  // namespace hvd::rt

#undef HVD_INLINE
