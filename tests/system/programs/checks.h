// SPDX-License-Identifier: Apache-2.0
// What the whole-program tests' programs share: tensors of any type, values in them, and what
// reductions make of those.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "bench/hvd_bench/values.h"
#include "hvd/hvd.hpp"

using bench::Dtype;

// Any thread. The first that fails ends the process: only one may call exit.
[[noreturn]] inline void Fail(const std::string& what) {
  static auto* const first = new std::mutex;
  std::fprintf(stderr, "rank %d: %s\n", hvd::rank(), what.c_str());
  first->lock();
  std::exit(1);
}

inline void Must(hvd_status_t status, const std::string& what) {
  if (status != HVD_OK) Fail(what + ": " + hvd_last_error());
}

inline void MustContain(const std::string& text, const std::string& part, const std::string& what) {
  if (text.find(part) == std::string::npos) Fail(what + ": no '" + part + "' in: " + text);
}

// hvd_last_error must have `text`.
inline void MustRefuse(hvd_status_t wanted, hvd_status_t status, const char* text) {
  if (status != wanted) Fail(std::string("not refused as ") + text + ": " + hvd_last_error());
  MustContain(hvd_last_error(), text, "refused");
}

// Where the next arrays of this rank lie: some in memory of hvd_alloc, by turns.
enum class ArrayMemory { kPrivate, kArena, kMixed };
inline ArrayMemory array_memory = ArrayMemory::kPrivate;

inline bool NextIsInArena() {
  static int turn = hvd::rank();
  return array_memory == ArrayMemory::kArena ||
         (array_memory == ArrayMemory::kMixed && ++turn % 3 != 0);
}

class Array {
 public:
  Array(const Dtype& dtype, std::vector<int64_t> shape)
      : dtype_(dtype), shape_(std::move(shape)), count_(1) {
    for (const int64_t extent : shape_) count_ *= static_cast<size_t>(extent);
    const size_t bytes = count_ * dtype.bytes;
    if (NextIsInArena()) {
      shared_ = hvd::Buffer<unsigned char>(bytes);
      bytes_ = shared_.data();
    } else {
      private_.resize(bytes);
      bytes_ = private_.data();
    }
    tensor_.data = bytes_;
    tensor_.shape = shape_.data();
    tensor_.ndim = static_cast<int32_t>(shape_.size());
    tensor_.dtype = dtype.code;
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  size_t count() const { return count_; }
  const hvd_tensor_t* tensor() const { return &tensor_; }
  void Set(size_t i, double value) { bench::Store(dtype_, value, &bytes_[i * dtype_.bytes]); }
  double Get(size_t i) const { return bench::Load(dtype_, &bytes_[i * dtype_.bytes]); }

 private:
  Dtype dtype_;
  std::vector<int64_t> shape_;
  size_t count_;
  std::vector<unsigned char> private_;
  hvd::Buffer<unsigned char> shared_;
  unsigned char* bytes_;
  hvd_tensor_t tensor_ = HVD_TENSOR_INIT;
};

inline bool IsFloat8(const Dtype& dtype) {
  return dtype.code == HVD_FLOAT8_E4M3FN || dtype.code == HVD_FLOAT8_E5M2;
}
inline bool IsComplex(const Dtype& dtype) {
  return dtype.code == HVD_COMPLEX64 || dtype.code == HVD_COMPLEX128;
}
inline bool IsFloat(const Dtype& dtype) {
  return dtype.code == HVD_FLOAT16 || dtype.code == HVD_BFLOAT16 || dtype.code == HVD_FLOAT32 ||
         dtype.code == HVD_FLOAT64 || IsFloat8(dtype) || IsComplex(dtype);
}
// Whether negative numbers are written: bench::Store knows none of 16 bits.
inline bool IsSigned(const Dtype& dtype) {
  const bool has_sign = IsFloat(dtype) || dtype.code == HVD_INT8 || dtype.code == HVD_INT16 ||
                        dtype.code == HVD_INT32 || dtype.code == HVD_INT64;
  return has_sign && dtype.code != HVD_FLOAT16 && dtype.code != HVD_BFLOAT16;
}

inline bool IsBitwise(hvd_op_t op) { return op == HVD_BAND || op == HVD_BOR || op == HVD_BXOR; }
// Whether there is such a reduction.
inline bool Exists(const Dtype& dtype, hvd_op_t op) {
  if (dtype.code == HVD_BOOL && op == HVD_AVERAGE) return false;
  if (IsComplex(dtype) && (op == HVD_MIN || op == HVD_MAX)) return false;
  return !IsFloat(dtype) || !IsBitwise(op);
}

// 1 or 2 (2 on every fourth rank, so that products stay small), negative in places; bools by turns.
inline double Value(const Dtype& dtype, int rank, size_t i) {
  const size_t turn = (static_cast<size_t>(rank) + i) % 4;
  if (dtype.code == HVD_BOOL) return i % 3 == 0 ? 1 : turn == 0;
  const double sign = IsSigned(dtype) && i % 5 == 4 ? -1 : 1;
  return sign * (turn == 0 ? 2 : 1);
}

inline double Combine(const Dtype& dtype, hvd_op_t op, double a, double b) {
  const bool is_bool = dtype.code == HVD_BOOL;
  const auto bits_a = static_cast<int64_t>(a), bits_b = static_cast<int64_t>(b);
  switch (op) {
    case HVD_BAND:
      return static_cast<double>(bits_a & bits_b);
    case HVD_BOR:
      return static_cast<double>(bits_a | bits_b);
    case HVD_BXOR:
      return static_cast<double>(bits_a ^ bits_b);
    case HVD_MIN:
      return std::min(a, b);
    case HVD_MAX:
      return std::max(a, b);
    case HVD_PRODUCT:
      return a * b;
    default:
      return is_bool ? std::max(a, b) : a + b;
  }
}

// float8 holds few integers, and combines exactly before it rounds.
inline double Rounded(const Dtype& dtype, double value) {
  if (!IsFloat8(dtype)) return value;
  unsigned char rounded = 0;
  bench::Store(dtype, value, &rounded);
  return bench::Load(dtype, &rounded);
}

inline double Reduced(const Dtype& dtype, hvd_op_t op, size_t i) {
  double result = Value(dtype, 0, i);
  for (int rank = 1; rank < hvd::size(); ++rank) {
    result = Combine(dtype, op, result, Value(dtype, rank, i));
  }
  if (op == HVD_AVERAGE) {
    result /= hvd::size();
    if (!IsFloat(dtype)) result = std::trunc(result);
  }
  return Rounded(dtype, result);
}

// Returns what an average may be off by: everything else is exact.
inline double Tolerance(const Dtype& dtype, hvd_op_t op) {
  if (op != HVD_AVERAGE || !IsFloat(dtype) || IsFloat8(dtype)) return 0;
  if (dtype.code == HVD_FLOAT64 || dtype.code == HVD_COMPLEX128) return 1e-14;
  if (dtype.code == HVD_FLOAT32 || dtype.code == HVD_COMPLEX64) return 1e-6;
  return dtype.code == HVD_FLOAT16 ? 2e-3 : 2e-2;
}
