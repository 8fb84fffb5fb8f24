// SPDX-License-Identifier: Apache-2.0
// The options of the calls of hvd.hpp, which includes it, and the errors that they throw.
#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "hvd/hvd.h"

namespace hvd {

// The exception that a failed call throws. what() is the whole message: what failed, where, and
// what to do next.
class Error : public std::runtime_error {
 public:
  Error(hvd_status_t code, const std::string& message) : std::runtime_error(message), code_(code) {}
  // HVD_ERR_ABORTED: a peer died or left. HVD_ERR_MISMATCH: the ranks asked for different things;
  // hvd goes on working. The others: see hvd.h.
  hvd_status_t code() const noexcept { return code_; }

 private:
  hvd_status_t code_;
};

// Thrown in an elastic job (elastic.hpp). The members are to change: reset, and go on without going
// back.
class HostsUpdated : public Error {
 public:
  explicit HostsUpdated(const std::string& message) : Error(HVD_ERR_HOSTS_UPDATED, message) {}
};
// This process is in no later epoch of the job: end it, with code 0.
class Removed : public Error {
 public:
  explicit Removed(const std::string& message) : Error(HVD_ERR_REMOVED, message) {}
};

enum class Op : int32_t {
  kAverage = HVD_AVERAGE,
  kSum = HVD_SUM,
  kAdasum = HVD_ADASUM,
  kMin = HVD_MIN,
  kMax = HVD_MAX,
  kProduct = HVD_PRODUCT,
  kBitwiseAnd = HVD_BAND,
  kBitwiseOr = HVD_BOR,
  kBitwiseXor = HVD_BXOR,
};

// How floats of 32 and 64 bits travel.
enum class Compression : int32_t {
  kNone = HVD_COMPRESSION_NONE,
  kFloat16 = HVD_COMPRESSION_FP16,
  kBfloat16 = HVD_COMPRESSION_BF16,
};

// The name by which all ranks know a call: any text, and none means by its order. Points to the
// text, for the length of the call that it is given to.
class Name {
 public:
  Name() = default;
  Name(const char* text) : text_(text) {}
  Name(const std::string& text) : text_(text.c_str()) {}
  Name(std::nullptr_t) = delete;
  template <class Number, class = std::enable_if_t<std::is_integral<Number>::value>>
  Name(Number) = delete;  // a name is text: is this a root or a count too many?
  const char* c_str() const { return text_; }

 private:
  const char* text_ = "";
};

// All that a collective can be told; the functions without it take the part that is asked for most.
// A field that an operation has no use for must stay as it is.
struct Options {
  std::string name = {};
  int process_set = HVD_GLOBAL_PROCESS_SET;
  Op op = Op::kAverage;
  double prescale = 1;
  double postscale = 1;
  Compression compression = Compression::kNone;
  bool average_over_contributors = false;  // not over ranks that have joined without it
  bool refuse_joined = false;              // HVD_ERR_MISMATCH while a rank has joined
  // A text that says what the tensors are, for instance their names in their order:
  // HVD_ERR_MISMATCH where the ranks do not say the same. Empty: nothing is compared.
  std::string contents = {};
};

// Floats of 16 and 8 bits as bits: they travel and are summed; arithmetic is the caller's business.
struct float16 {
  uint16_t bits;
};
struct bfloat16 {
  uint16_t bits;
};
struct float8_e4m3fn {
  uint8_t bits;
};
struct float8_e5m2 {
  uint8_t bits;
};

// The hvd_dtype_t of a C++ type. Types that hvd cannot reduce have no value and do not compile.
template <class T, class = void>
struct dtype_of;
template <>
struct dtype_of<char>
    : std::integral_constant<hvd_dtype_t, static_cast<char>(-1) < 0 ? HVD_INT8 : HVD_UINT8> {};
template <>
struct dtype_of<uint8_t> : std::integral_constant<hvd_dtype_t, HVD_UINT8> {};
template <>
struct dtype_of<int8_t> : std::integral_constant<hvd_dtype_t, HVD_INT8> {};
template <>
struct dtype_of<uint16_t> : std::integral_constant<hvd_dtype_t, HVD_UINT16> {};
template <>
struct dtype_of<uint32_t> : std::integral_constant<hvd_dtype_t, HVD_UINT32> {};
template <>
struct dtype_of<uint64_t> : std::integral_constant<hvd_dtype_t, HVD_UINT64> {};
template <>
struct dtype_of<int16_t> : std::integral_constant<hvd_dtype_t, HVD_INT16> {};
template <>
struct dtype_of<int32_t> : std::integral_constant<hvd_dtype_t, HVD_INT32> {};
template <>
struct dtype_of<int64_t> : std::integral_constant<hvd_dtype_t, HVD_INT64> {};
template <>
struct dtype_of<float16> : std::integral_constant<hvd_dtype_t, HVD_FLOAT16> {};
template <>
struct dtype_of<bfloat16> : std::integral_constant<hvd_dtype_t, HVD_BFLOAT16> {};
template <>
struct dtype_of<float8_e4m3fn> : std::integral_constant<hvd_dtype_t, HVD_FLOAT8_E4M3FN> {};
template <>
struct dtype_of<float8_e5m2> : std::integral_constant<hvd_dtype_t, HVD_FLOAT8_E5M2> {};
template <>
struct dtype_of<std::complex<float>> : std::integral_constant<hvd_dtype_t, HVD_COMPLEX64> {};
template <>
struct dtype_of<std::complex<double>> : std::integral_constant<hvd_dtype_t, HVD_COMPLEX128> {};
template <>
struct dtype_of<float> : std::integral_constant<hvd_dtype_t, HVD_FLOAT32> {};
template <>
struct dtype_of<double> : std::integral_constant<hvd_dtype_t, HVD_FLOAT64> {};
template <>
struct dtype_of<bool> : std::integral_constant<hvd_dtype_t, HVD_BOOL> {
  static_assert(sizeof(bool) == 1, "hvd's bool is one byte");
};

// One of long and long long is int64_t, and the other is as good.
template <class T>
struct dtype_of<
    T, std::enable_if_t<(std::is_same<T, long>::value || std::is_same<T, long long>::value) &&
                        !std::is_same<T, int64_t>::value && sizeof(T) == 8>>
    : std::integral_constant<hvd_dtype_t, HVD_INT64> {};
template <class T>
struct dtype_of<T, std::enable_if_t<(std::is_same<T, unsigned long>::value ||
                                     std::is_same<T, unsigned long long>::value) &&
                                    !std::is_same<T, uint64_t>::value && sizeof(T) == 8>>
    : std::integral_constant<hvd_dtype_t, HVD_UINT64> {};

namespace internal {

template <class T, class = void>
struct HasDtype : std::false_type {};
template <class T>
struct HasDtype<T, std::void_t<decltype(dtype_of<T>::value)>> : std::true_type {};

template <class T>
constexpr hvd_dtype_t DtypeOf() {
  static_assert(!std::is_const<T>::value,
                "hvd writes its result here, but the data is const; give it memory of your own");
  static_assert(HasDtype<std::remove_const_t<T>>::value,
                "hvd has no elements of this type. It has the integers of 8 to 64 bits, signed and "
                "unsigned (and char), float, double, bool, std::complex of float and double, "
                "hvd::float16, hvd::bfloat16, hvd::float8_e4m3fn and hvd::float8_e5m2");
  if constexpr (HasDtype<T>::value) {
    return dtype_of<T>::value;
  } else {
    return HVD_UINT8;
  }
}

// A std::vector<bool> has no memory of bools.
template <class T>
constexpr bool RefuseVectorOfBool() {
  static_assert(!std::is_same<T, bool>::value,
                "std::vector<bool> is packed bits, which hvd cannot read: use "
                "std::vector<uint8_t>, or for what stays in place std::array<bool, N> or "
                "hvd::Buffer<bool>");
  return std::is_same<T, bool>::value;
}
template <class T>
auto DataOf(std::vector<T>& data) {
  if constexpr (!RefuseVectorOfBool<T>()) {
    return data.data();
  } else {
    return static_cast<T*>(nullptr);
  }
}
template <class T>
const T* DataOf(const std::vector<T>& data) {
  return DataOf(const_cast<std::vector<T>&>(data));
}

inline void ThrowIfError(hvd_status_t status) {
  if (status == HVD_ERR_HOSTS_UPDATED) throw HostsUpdated(hvd_last_error());
  if (status == HVD_ERR_REMOVED) throw Removed(hvd_last_error());
  if (status != HVD_OK) throw Error(status, hvd_last_error());
}

// Whether an exception is on its way through the scope of the object that has this.
class Unwinding {
 public:
  bool now() const noexcept { return std::uncaught_exceptions() > before_; }

 private:
  int before_ = std::uncaught_exceptions();
};

// A tensor of one dimension (or of rows × row_elements) over the caller's memory. `shape` is part
// of it, so it stays where it was made.
template <class T>
class Tensor {
 public:
  Tensor(const T* data, size_t count) : Tensor(data, count, 1, 1) {}
  Tensor(const T* data, size_t rows, size_t row_elements) : Tensor(data, rows, row_elements, 2) {}
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;
  const hvd_tensor_t* get() const { return &tensor_; }

 private:
  // hvd_tensor_t serves as input and as output and so holds a plain pointer; inputs are only read.
  Tensor(const T* data, size_t rows, size_t row_elements, int32_t ndim)
      : shape_{static_cast<int64_t>(rows), static_cast<int64_t>(row_elements)} {
    tensor_.data = const_cast<std::remove_const_t<T>*>(data);
    tensor_.shape = shape_.data();
    tensor_.ndim = ndim;
    tensor_.dtype = DtypeOf<T>();
  }

  std::array<int64_t, 2> shape_;
  hvd_tensor_t tensor_ = HVD_TENSOR_INIT;
};

inline hvd_options_t MakeOptions(const Name& name) {
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.name = name.c_str();  // copied by the call it is passed to
  return options;
}
inline hvd_options_t MakeOptions(Op op, const Name& name) {
  hvd_options_t options = MakeOptions(name);
  options.op = static_cast<int32_t>(op);
  return options;
}

// `options` must live as long as the result: its texts are not copied here.
inline hvd_options_t MakeOptions(const Options& options) {
  hvd_options_t made = MakeOptions(Name(options.name));
  made.contents = options.contents.c_str();
  made.process_set = options.process_set;
  made.op = static_cast<int32_t>(options.op);
  made.prescale = options.prescale;
  made.postscale = options.postscale;
  made.compression = static_cast<int32_t>(options.compression);
  made.flags = (options.average_over_contributors ? HVD_AVERAGE_OVER_CONTRIBUTORS : 0) |
               (options.refuse_joined ? HVD_REFUSE_JOINED : 0);
  return made;
}

}  // namespace internal

}  // namespace hvd
