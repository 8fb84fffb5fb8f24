// SPDX-License-Identifier: Apache-2.0
// The loop behind integer averages, which are summed in a wider type. Included by reduce_loop.h
// alone, whose rules hold here too: the compiler makes vectors of it by each level's flags.
#pragma once

#include "runtime/collective/kernels/float_rules.h"
#include "runtime/collective/kernels/int_average.h"
#include "runtime/collective/kernels/reduce_kernels.h"
#include "runtime/collective/kernels/reduce_vectors.h"

namespace hvd::rt {

template <class Level, class T>
struct IntAverage {
  using Sum = typename SumOfInts<T>::Type;
  static constexpr size_t kBlock = 64;

  static HVD_INLINE const T* Source(const ReduceTask& task, int s) {
    return static_cast<const T*>(task.sources[s]);
  }

  template <bool kScaled>
  static HVD_INLINE void Block(const ReduceTask& task, size_t at, size_t count) {
    Sum sums[kBlock] = {};
    T elements[kBlock];
    for (int s = 0; s < task.source_count; ++s) {
      memcpy(elements, Source(task, s) + at, count * sizeof(T));
      if (kScaled && task.prescale != 1 && s >= task.prescaled) {
        for (size_t i = 0; i < count; ++i) {
          elements[i] = static_cast<T>(TruncateScaled(elements[i] * task.prescale));
        }
      }
      for (size_t i = 0; i < count; ++i) sums[i] += elements[i];
    }
    const double postscale = kScaled ? task.postscale : 1;
    for (size_t i = 0; i < count; ++i) {
      elements[i] = AverageOf<T>(sums[i], postscale, task.divisor);
    }
    for (int d = 0; d < task.destination_count; ++d) {
      memcpy(static_cast<T*>(task.destinations[d]) + at, elements, count * sizeof(T));
    }
  }

  template <bool kScaled>
  static HVD_INLINE void All(const ReduceTask& task) {
    size_t at = 0;
    for (; at + kBlock <= task.count; at += kBlock) Block<kScaled>(task, at, kBlock);
    if (at < task.count) Block<kScaled>(task, at, task.count - at);
  }

  static void Run(const ReduceTask& task) {
    const FloatRules rules;
    if (task.prescale == 1 && task.postscale == 1) return All<false>(task);
    All<true>(task);
  }
};

}  // namespace hvd::rt
