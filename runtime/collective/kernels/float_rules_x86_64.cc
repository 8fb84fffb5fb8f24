#include <xmmintrin.h>

#include <cstdint>
#include <cstring>

#include "runtime/collective/kernels/float_rules.h"

namespace hvd {
namespace {

constexpr uint32_t kAtStart = 0x1f80;  // every exception masked, to nearest, denormals kept
constexpr uint32_t kRaised = 0x3f;     // not rules: which exceptions there have been

}  // namespace

// Nothing here computes with the x87, which has rules of its own.
FloatRules::FloatRules() {
  const uint32_t rules = _mm_getcsr();
  if ((rules & ~kRaised) == kAtStart) return;
  changed_ = true;
  memcpy(saved_, &rules, sizeof(rules));
  _mm_setcsr(kAtStart);
}

FloatRules::~FloatRules() {
  if (!changed_) return;
  uint32_t rules;
  memcpy(&rules, saved_, sizeof(rules));
  _mm_setcsr(rules);
}

}  // namespace hvd
