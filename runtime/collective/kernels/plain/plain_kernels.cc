// SPDX-License-Identifier: Apache-2.0
// The kernels that are used too seldom to be compiled once more for every instruction level:
// unsigned integers of more than 8 bits, float8, complex numbers, and the bitwise operations of all
// types.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "runtime/collective/kernels/float8.h"
#include "runtime/collective/kernels/float_rules.h"
#include "runtime/collective/kernels/int_average.h"
#include "runtime/collective/kernels/levels.h"
#include "runtime/collective/kernels/plain/plain_loop.h"

namespace hvd::rt {
namespace {

// Elements: how one lies in memory, what it is combined in, how it is scaled.

template <class T>
struct IntElement {
  using Stored = T;
  using Work = T;
  static T Load(T stored) { return stored; }
  static T Store(T value) { return value; }
  static T Scale(T value, double scale) {
    return TruncateAs<T>(static_cast<double>(value) * scale);
  }
  static T Finish(T value, double postscale, int divisor) {
    if (postscale != 1) return TruncateAs<T>(static_cast<double>(value) * postscale / divisor);
    return static_cast<T>(value / static_cast<uint64_t>(divisor));
  }
};

// An integer of an average is summed in the type that holds the sum.
template <class T>
struct IntAverageElement {
  using Stored = T;
  using Work = typename SumOfInts<T>::Type;
  static Work Load(T stored) { return stored; }
  static T Store(Work value) { return static_cast<T>(value); }
  static Work Scale(Work value, double scale) {
    return TruncateAs<T>(static_cast<double>(value) * scale);
  }
  static Work Finish(Work value, double postscale, int divisor) {
    return AverageOf<T>(value, postscale, divisor);
  }
};

// Cannot be scaled, nor divided.
template <class T>
struct BitsElement {
  using Stored = T;
  using Work = T;
  static Work Load(Stored stored) { return stored; }
  static Stored Store(Work value) { return value; }
  static Work Scale(Work value, double) { return value; }
  static Work Finish(Work value, double, int) { return value; }
};

struct BoolElement : BitsElement<uint8_t> {
  static uint8_t Load(uint8_t stored) { return stored != 0 ? 1 : 0; }
};

struct InDouble {
  using Work = double;
  static Work Scale(Work value, double scale) { return value * scale; }
  static Work Finish(Work value, double postscale, int divisor) {
    return value / divisor * postscale;
  }
};

template <class Format>
struct Float8Element : InDouble {
  using Stored = uint8_t;
  static Work Load(Stored stored) { return Float8<Format>::Decode(stored); }
  static Stored Store(Work value) { return Float8<Format>::Encode(value); }
};

template <class Real>
struct Complex {
  Real re, im;
};

template <class Real>
struct ComplexElement {
  using Stored = Complex<Real>;
  using Work = Complex<Real>;
  static Work Load(Stored stored) { return stored; }
  static Stored Store(Work value) { return {OneNan(value.re), OneNan(value.im)}; }
  static Work Scale(Work value, double scale) {
    return {static_cast<Real>(value.re * scale), static_cast<Real>(value.im * scale)};
  }
  static Work Finish(Work value, double postscale, int divisor) {
    return {FinishOne(value.re, postscale, divisor), FinishOne(value.im, postscale, divisor)};
  }

 private:
  // Which of two NaNs an operation keeps is the compiler's choice.
  static Real OneNan(Real x) { return x == x ? x : std::numeric_limits<Real>::quiet_NaN(); }
  static Real FinishOne(Real x, double postscale, int divisor) {
    return static_cast<Real>(x / static_cast<double>(divisor) * postscale);
  }
};

// Operations. Unsigned integers wrap.
struct Sum {
  template <class T>
  static T Apply(T a, T b) {
    return static_cast<T>(a + b);
  }
};
struct Product {
  static double Apply(double a, double b) { return a * b; }
  template <class T>
  static T Apply(T a, T b) {
    return static_cast<T>(1u * a * b);  // in no type that is signed and overflows
  }
  // Nothing changes by 1, for joined ranks bring that: infinity times its imaginary 0 were NaN.
  template <class Real>
  static Complex<Real> Apply(Complex<Real> a, Complex<Real> b) {
    if (IsOne(b)) return a;
    if (IsOne(a)) return b;
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }

 private:
  template <class Real>
  static bool IsOne(Complex<Real> x) {
    return x.re == 1 && x.im == 0;
  }
};
struct Min {
  template <class T>
  static T Apply(T a, T b) {
    return b < a ? b : a;
  }
  // A NaN stays; -0 is less than 0, so that the order of the sources does not matter.
  static double Apply(double a, double b) {
    if (a != a || b != b) return a + b;
    if (a == b) return std::signbit(a) ? a : b;
    return b < a ? b : a;
  }
};
struct Max {
  template <class T>
  static T Apply(T a, T b) {
    return a < b ? b : a;
  }
  static double Apply(double a, double b) {
    if (a != a || b != b) return a + b;
    if (a == b) return std::signbit(a) ? b : a;
    return a < b ? b : a;
  }
};
struct And {
  template <class T>
  static T Apply(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <class T>
  static T Apply(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct ExclusiveOr {
  template <class T>
  static T Apply(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

// Sums of complex numbers are those of twice as many floats.
template <hvd_dtype_t kPart>
void SumComplex(const ReduceTask& task) {
  ReduceTask parts = task;
  parts.count *= 2;
  FindReduceKernel(kPart, HVD_SUM, BestKernelLevel())(parts);
}

template <class Element>
ReduceKernel FindBitwise(hvd_op_t op) {
  switch (op) {
    case HVD_BAND:
      return ReducePlainly<Element, And>;
    case HVD_BOR:
      return ReducePlainly<Element, Or>;
    case HVD_BXOR:
      return ReducePlainly<Element, ExclusiveOr>;
    default:
      return nullptr;
  }
}

template <class T>
ReduceKernel FindForUnsigned(hvd_op_t op) {
  using Element = IntElement<T>;
  switch (op) {
    case HVD_AVERAGE:
      return ReducePlainly<IntAverageElement<T>, Sum>;
    case HVD_SUM:
      return ReducePlainly<Element, Sum>;
    case HVD_PRODUCT:
      return ReducePlainly<Element, Product>;
    case HVD_MIN:
      return ReducePlainly<Element, Min>;
    case HVD_MAX:
      return ReducePlainly<Element, Max>;
    default:
      return FindBitwise<BitsElement<T>>(op);
  }
}

template <class Format>
ReduceKernel FindForFloat8(hvd_op_t op) {
  using Element = Float8Element<Format>;
  switch (op) {
    case HVD_AVERAGE:
    case HVD_SUM:
      return ReducePlainly<Element, Sum>;
    case HVD_PRODUCT:
      return ReducePlainly<Element, Product>;
    case HVD_MIN:
      return ReducePlainly<Element, Min>;
    case HVD_MAX:
      return ReducePlainly<Element, Max>;
    default:
      return nullptr;
  }
}

template <class Real, hvd_dtype_t kPart>
ReduceKernel FindForComplex(hvd_op_t op) {
  switch (op) {
    case HVD_AVERAGE:
    case HVD_SUM:
      return SumComplex<kPart>;
    case HVD_PRODUCT:
      return ReducePlainly<ComplexElement<Real>, Product>;
    default:
      return nullptr;
  }
}

}  // namespace

ReduceKernel FindPlainKernel(hvd_dtype_t dtype, hvd_op_t op) {
  switch (dtype) {
    case HVD_UINT8:
    case HVD_INT8:
      return FindBitwise<BitsElement<uint8_t>>(op);
    case HVD_INT16:
      return FindBitwise<BitsElement<uint16_t>>(op);
    case HVD_INT32:
      return FindBitwise<BitsElement<uint32_t>>(op);
    case HVD_INT64:
      return FindBitwise<BitsElement<uint64_t>>(op);
    case HVD_BOOL:
      return FindBitwise<BoolElement>(op);
    case HVD_UINT16:
      return FindForUnsigned<uint16_t>(op);
    case HVD_UINT32:
      return FindForUnsigned<uint32_t>(op);
    case HVD_UINT64:
      return FindForUnsigned<uint64_t>(op);
    case HVD_FLOAT8_E4M3FN:
      return FindForFloat8<E4m3fn>(op);
    case HVD_FLOAT8_E5M2:
      return FindForFloat8<E5m2>(op);
    case HVD_COMPLEX64:
      return FindForComplex<float, HVD_FLOAT32>(op);
    case HVD_COMPLEX128:
      return FindForComplex<double, HVD_FLOAT64>(op);
    case HVD_FLOAT16:
    case HVD_FLOAT32:
    case HVD_FLOAT64:
    case HVD_BFLOAT16:
      return nullptr;
  }
  return nullptr;
}

}  // namespace hvd::rt
