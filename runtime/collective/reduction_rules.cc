// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/reduction_rules.h"

#include <string>

namespace hvd::rt {
namespace {

bool HasAdasum(hvd_dtype_t dtype) {
  return dtype == HVD_FLOAT16 || dtype == HVD_BFLOAT16 || dtype == HVD_FLOAT32 ||
         dtype == HVD_FLOAT64;
}

// Empty where there is nothing to say against it.
std::string WhyNotOf(hvd_dtype_t dtype, hvd_op_t op) {
  if (op == HVD_AVERAGE && dtype == HVD_BOOL) {
    return "bool tensors have no average; use sum (or) or min (and)";
  }
  if (op == HVD_ADASUM && !HasAdasum(dtype)) {
    return std::string("Adasum is for float16, bfloat16, float32 and float64 tensors, not ") +
           DtypeName(dtype);
  }
  if ((op == HVD_MIN || op == HVD_MAX) && IsComplex(dtype)) {
    return std::string("complex numbers have no order, so ") + DtypeName(dtype) +
           " tensors have no " + OpName(op) + "; use sum, average or product";
  }
  if (IsBitwise(op) && !IsInteger(dtype) && dtype != HVD_BOOL) {
    return std::string(OpName(op)) + " is for integer and bool tensors, not " + DtypeName(dtype);
  }
  return "";
}

}  // namespace

const char* DtypeName(hvd_dtype_t dtype) {
  switch (dtype) {
    case HVD_UINT8:
      return "uint8";
    case HVD_INT8:
      return "int8";
    case HVD_UINT16:
      return "uint16";
    case HVD_INT16:
      return "int16";
    case HVD_INT32:
      return "int32";
    case HVD_INT64:
      return "int64";
    case HVD_FLOAT16:
      return "float16";
    case HVD_FLOAT32:
      return "float32";
    case HVD_FLOAT64:
      return "float64";
    case HVD_BOOL:
      return "bool";
    case HVD_BFLOAT16:
      return "bfloat16";
    case HVD_UINT32:
      return "uint32";
    case HVD_UINT64:
      return "uint64";
    case HVD_FLOAT8_E4M3FN:
      return "float8_e4m3fn";
    case HVD_FLOAT8_E5M2:
      return "float8_e5m2";
    case HVD_COMPLEX64:
      return "complex64";
    case HVD_COMPLEX128:
      return "complex128";
  }
  return "unknown";
}

const char* OpName(hvd_op_t op) {
  switch (op) {
    case HVD_AVERAGE:
      return "average";
    case HVD_SUM:
      return "sum";
    case HVD_ADASUM:
      return "adasum";
    case HVD_MIN:
      return "min";
    case HVD_MAX:
      return "max";
    case HVD_PRODUCT:
      return "product";
    case HVD_BAND:
      return "bitwise and";
    case HVD_BOR:
      return "bitwise or";
    case HVD_BXOR:
      return "bitwise exclusive or";
  }
  return "unknown";
}

bool IsInteger(hvd_dtype_t dtype) {
  switch (dtype) {
    case HVD_UINT8:
    case HVD_INT8:
    case HVD_UINT16:
    case HVD_INT16:
    case HVD_UINT32:
    case HVD_INT32:
    case HVD_UINT64:
    case HVD_INT64:
      return true;
    default:
      return false;
  }
}

absl::Status CheckReduction(const ReductionKind& kind) {
  if (const std::string why = WhyNotOf(kind.dtype, kind.op); !why.empty()) {
    return absl::InvalidArgumentError("op: " + why);
  }
  if (kind.prescale == 1 && kind.postscale == 1) return absl::OkStatus();
  const std::string scale = kind.prescale != 1 ? "prescale: " : "postscale: ";
  if (kind.dtype == HVD_BOOL) {
    return absl::InvalidArgumentError(scale + "bool tensors cannot be scaled; leave it at 1");
  }
  if (IsBitwise(kind.op)) {
    return absl::InvalidArgumentError(scale + "a " + OpName(kind.op) +
                                      " cannot be scaled; leave it at 1");
  }
  return absl::OkStatus();
}

absl::StatusOr<ReduceKernel> KernelFor(const ReductionKind& kind) {
  const ReduceKernel kernel = FindReduceKernel(kind.dtype, kind.op, BestKernelLevel());
  if (kernel != nullptr && kind.prescale == 1 && kind.postscale == 1) return kernel;
  if (absl::Status known = CheckReduction(kind); !known.ok()) return known;
  if (kernel != nullptr) return kernel;
  return absl::InvalidArgumentError(std::string("op: ") + OpName(kind.op) +
                                    " does not go element by element");
}

}  // namespace hvd::rt
