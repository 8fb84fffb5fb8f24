// The one loop behind all reduce kernels, as a template over the instruction level, the element and
// the operation. Included by one .cc a level, each compiled with that level's flags. `Level` is a
// type of that .cc's unnamed namespace, so every instance has internal linkage and the linker can
// never hand a plain processor the AVX-512 version. For the same reason nothing from the standard
// library's templates is called here.
//
// A tail is copied into a padded vector and goes through the same instructions as the rest.
#pragma once

#include "runtime/collective/kernels/reduce_elements.h"

namespace hvd {

// Unscaled tasks, the most of them, have a loop of their own.
struct NoScales {
  HVD_INLINE NoScales(const ReduceTask&, bool) {}
  template <class Vector>
  static HVD_INLINE Vector Before(Vector v) {
    return v;
  }
  template <class Vector>
  static HVD_INLINE Vector After(Vector v) {
    return v;
  }
};

// The destinations' lines somewhat further on, for writing: those that are in another core's cache
// come while this block is computed, owned at once instead of read first and claimed later.
template <size_t kBytes>
HVD_INLINE void FetchForWriting(const ReduceTask& task, size_t at_byte, size_t end_byte) {
  constexpr size_t kAhead = 512;
  if (at_byte + kAhead + kBytes > end_byte) return;
  for (int d = 0; d < task.destination_count; ++d) {
    auto* line = static_cast<char*>(task.destinations[d]) + at_byte + kAhead;
    for (size_t b = 0; b < kBytes; b += 64) __builtin_prefetch(line + b, 1);
  }
}

// `kVectors` vectors of all sources from element `at` on, combined and stored.
template <class Element, class Op, int kVectors, class Scales>
HVD_INLINE void ReduceBlock(const ReduceTask& task, const Scales& scales, size_t at) {
  using Stored = typename Element::Stored;
  constexpr size_t kBytes = kVectors * Element::kLanes * sizeof(Stored);
  if (kBytes >= 64) {
    FetchForWriting<kBytes>(task, at * sizeof(Stored), task.count * sizeof(Stored));
  }
  typename Element::Vector sum[kVectors];
  const auto* first = static_cast<const Stored*>(task.sources[0]) + at;
  for (int v = 0; v < kVectors; ++v) {
    sum[v] = scales.Before(Element::Load(first + v * Element::kLanes));
  }
  for (int s = 1; s < task.source_count; ++s) {
    const auto* source = static_cast<const Stored*>(task.sources[s]) + at;
    for (int v = 0; v < kVectors; ++v) {
      sum[v] = Op::Apply(sum[v], scales.Before(Element::Load(source + v * Element::kLanes)));
    }
  }
  for (int v = 0; v < kVectors; ++v) sum[v] = scales.After(sum[v]);
  for (int d = 0; d < task.destination_count; ++d) {
    auto* destination = static_cast<Stored*>(task.destinations[d]) + at;
    for (int v = 0; v < kVectors; ++v) {
      Element::Store(destination + v * Element::kLanes, sum[v]);
    }
  }
}

// The last elements, fewer than a vector.
template <class Element, class Op, class Scales>
HVD_INLINE void ReduceTail(const ReduceTask& task, const Scales& scales, size_t at) {
  using Stored = typename Element::Stored;
  const size_t bytes = (task.count - at) * sizeof(Stored);
  Stored padded[Element::kLanes] = {};
  memcpy(padded, static_cast<const Stored*>(task.sources[0]) + at, bytes);
  typename Element::Vector sum = scales.Before(Element::Load(padded));
  for (int s = 1; s < task.source_count; ++s) {
    memcpy(padded, static_cast<const Stored*>(task.sources[s]) + at, bytes);
    sum = Op::Apply(sum, scales.Before(Element::Load(padded)));
  }
  Element::Store(padded, scales.After(sum));
  for (int d = 0; d < task.destination_count; ++d) {
    memcpy(static_cast<Stored*>(task.destinations[d]) + at, padded, bytes);
  }
}

template <class Element, class Op, class Scales>
HVD_INLINE void ReduceWith(const ReduceTask& task) {
  constexpr int kVectors = 4;
  constexpr size_t kBlock = kVectors * Element::kLanes;
  const Scales scales(task, Op::kIsSum);
  size_t at = 0;
  for (; at + kBlock <= task.count; at += kBlock) {
    ReduceBlock<Element, Op, kVectors>(task, scales, at);
  }
  for (; at + Element::kLanes <= task.count; at += Element::kLanes) {
    ReduceBlock<Element, Op, 1>(task, scales, at);
  }
  if (at < task.count) ReduceTail<Element, Op>(task, scales, at);
}

template <class Element, class Op>
void Reduce(const ReduceTask& task) {
  if (task.divisor == 1 && task.prescale == 1 && task.postscale == 1) {
    ReduceWith<Element, Op, NoScales>(task);
  } else {
    ReduceWith<Element, Op, typename Element::Scales>(task);
  }
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
