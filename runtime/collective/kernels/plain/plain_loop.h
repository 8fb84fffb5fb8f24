// SPDX-License-Identifier: Apache-2.0
// The loop behind the kernels of plain_kernels.cc: block by block, each source as a whole, so that
// the compiler makes vectors of what it can.
//
// An Element has Stored and Work (what lies in memory, what it is combined in), Load and Store
// between them, Scale(value, prescale) and Finish(value, postscale, divisor). An Op has Apply.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "runtime/collective/kernels/float_rules.h"
#include "runtime/collective/kernels/reduce_kernels.h"

namespace hvd::rt {

template <class Element, class Op>
class PlainBlocks {
 public:
  explicit PlainBlocks(const ReduceTask& task) : task_(task) {}

  void Run() {
    for (size_t at = 0; at < task_.count; at += kBlock) {
      RunBlock(at, std::min(kBlock, task_.count - at));
    }
  }

 private:
  using Stored = typename Element::Stored;
  using Work = typename Element::Work;
  static constexpr size_t kBlock = 64;

  void RunBlock(size_t at, size_t count) {
    Load(0, at, count);
    std::copy_n(loaded_, count, combined_);
    for (int s = 1; s < task_.source_count; ++s) {
      Load(s, at, count);
      for (size_t i = 0; i < count; ++i) combined_[i] = Op::Apply(combined_[i], loaded_[i]);
    }
    if (task_.postscale != 1 || task_.divisor != 1) {
      for (size_t i = 0; i < count; ++i) {
        combined_[i] = Element::Finish(combined_[i], task_.postscale, task_.divisor);
      }
    }
    for (size_t i = 0; i < count; ++i) stored_[i] = Element::Store(combined_[i]);
    for (int d = 0; d < task_.destination_count; ++d) {
      memcpy(static_cast<std::byte*>(task_.destinations[d]) + at * sizeof(Stored), stored_,
             count * sizeof(Stored));
    }
  }

  void Load(int source, size_t at, size_t count) {
    memcpy(stored_, static_cast<const std::byte*>(task_.sources[source]) + at * sizeof(Stored),
           count * sizeof(Stored));
    for (size_t i = 0; i < count; ++i) loaded_[i] = Element::Load(stored_[i]);
    if (task_.prescale == 1 || source < task_.prescaled) return;
    for (size_t i = 0; i < count; ++i) loaded_[i] = Element::Scale(loaded_[i], task_.prescale);
  }

  const ReduceTask& task_;
  Stored stored_[kBlock];
  Work loaded_[kBlock];
  Work combined_[kBlock];
};

template <class Element, class Op>
void ReducePlainly(const ReduceTask& task) {
  const FloatRules rules;
  PlainBlocks<Element, Op>(task).Run();
}

}  // namespace hvd::rt
