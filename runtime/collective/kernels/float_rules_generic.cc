#include <cfenv>
#include <new>

#include "runtime/collective/kernels/float_rules.h"

namespace hvd {

FloatRules::FloatRules() {
  static_assert(sizeof(std::fenv_t) <= sizeof(saved_));
  changed_ = std::fegetenv(new (saved_) std::fenv_t) == 0 && std::fesetenv(FE_DFL_ENV) == 0;
}

FloatRules::~FloatRules() {
  if (changed_) std::fesetenv(reinterpret_cast<const std::fenv_t*>(saved_));
}

}  // namespace hvd
