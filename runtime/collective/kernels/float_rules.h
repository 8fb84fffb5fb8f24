// SPDX-License-Identifier: Apache-2.0
// The rules of float arithmetic that results depend on.
#pragma once

#include <cstddef>

namespace hvd::rt {

// While one lives, this thread computes by the rules that every program starts with: to nearest,
// denormals kept, nothing trapped. A program may have set others (-ffast-math's start files flush
// denormals, feenableexcept traps); they would change bits between ranks, or raise SIGFPE in here.
// The program's own come back at the end. Costs nanoseconds where nothing has to be changed.
class FloatRules {
 public:
  FloatRules();
  ~FloatRules();
  FloatRules(const FloatRules&) = delete;
  FloatRules& operator=(const FloatRules&) = delete;

 private:
  alignas(16) std::byte saved_[64];  // what the processor has for it
  bool changed_ = false;
};

}  // namespace hvd::rt
