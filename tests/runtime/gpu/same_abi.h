// SPDX-License-Identifier: Apache-2.0
// Compares functions that are declared by hand with those of a real header: the names of types
// differ, what a caller puts into registers must not.
#pragma once

#include <type_traits>

namespace hvd::rt {

template <class A, class B>
constexpr bool SameValue() {
  if constexpr (std::is_void_v<A> || std::is_void_v<B>) {
    return std::is_void_v<A> && std::is_void_v<B>;
  } else if constexpr (std::is_pointer_v<A> && std::is_pointer_v<B>) {
    using To = std::remove_cv_t<std::remove_pointer_t<A>>;
    using Real = std::remove_cv_t<std::remove_pointer_t<B>>;
    // Pointers to numbers must have them of one size: they are written through.
    if constexpr (std::is_arithmetic_v<To> || std::is_enum_v<To>) {
      if constexpr (std::is_arithmetic_v<Real> || std::is_enum_v<Real>) {
        return sizeof(To) == sizeof(Real);
      }
    }
    return true;
  } else {
    constexpr bool kNumbers =
        (std::is_integral_v<A> || std::is_enum_v<A>)&&(std::is_integral_v<B> || std::is_enum_v<B>);
    constexpr bool kStructs = std::is_class_v<A> && std::is_class_v<B>;
    return sizeof(A) == sizeof(B) && alignof(A) == alignof(B) && (kNumbers || kStructs);
  }
}

template <class Mine, class Real>
struct SameCall : std::false_type {};
template <class R, class... A, class S, class... B>
struct SameCall<R (*)(A...), S (*)(B...)> {
  static constexpr bool Check() {
    if constexpr (sizeof...(A) != sizeof...(B)) {
      return false;
    } else {
      return SameValue<R, S>() && (SameValue<A, B>() && ...);
    }
  }
  static constexpr bool value = Check();
};

}  // namespace hvd::rt
