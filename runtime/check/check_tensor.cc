// SPDX-License-Identifier: Apache-2.0
#include "runtime/check/check_tensor.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <iterator>

#include "runtime/check/struct_sizes.h"
#include "runtime/collective/collectives.h"

namespace hvd::rt {
namespace {

constexpr size_t kMaxName = 4095;

absl::Status CheckShape(const hvd_tensor_t& tensor, const char* what) {
  if (tensor.ndim < 0 || tensor.ndim > kMaxDimensions) {
    return absl::InvalidArgumentError(std::string(what) + " has " + std::to_string(tensor.ndim) +
                                      " dimensions; 0 to 16 are possible");
  }
  if (tensor.ndim > 0 && tensor.shape == nullptr) {
    return absl::InvalidArgumentError(std::string(what) + ".shape is NULL");
  }
  size_t elements = 1;
  for (int d = 0; d < tensor.ndim; ++d) {
    if (tensor.shape[d] < 0) {
      return absl::InvalidArgumentError(std::string(what) + ".shape[" + std::to_string(d) +
                                        "] is negative");
    }
    if (__builtin_mul_overflow(elements, static_cast<size_t>(tensor.shape[d]), &elements) ||
        elements > SIZE_MAX / 16) {
      return absl::InvalidArgumentError(std::string(what) +
                                        " has more elements than memory can hold");
    }
  }
  return absl::OkStatus();
}

bool IsReduction(RequestKind kind) {
  return kind == RequestKind::kAllreduce || kind == RequestKind::kReduceScatter;
}

// Results whose rows the caller may not know before.
bool MayAllocate(RequestKind kind) {
  return kind == RequestKind::kReduceScatter || kind == RequestKind::kAllgather ||
         kind == RequestKind::kAlltoall;
}

absl::Status ForReductionsOnly(const char* field) {
  return absl::InvalidArgumentError(std::string("options.") + field + " is for reductions only");
}

absl::Status NotFinite(const char* field) {
  return absl::InvalidArgumentError(std::string("options.") + field + " is not a finite number");
}

absl::Status CheckReductionOptions(const hvd_options_t& options, RequestKind kind) {
  const int32_t op = options.op;
  if (op < HVD_AVERAGE || op > HVD_BXOR) {
    return absl::InvalidArgumentError("options.op is the unknown " + std::to_string(op));
  }
  if (op == HVD_ADASUM && kind == RequestKind::kReduceScatter) {
    return absl::InvalidArgumentError("options.op: Adasum is for allreduce only");
  }
  if (options.compression < HVD_COMPRESSION_NONE || options.compression > HVD_COMPRESSION_BF16) {
    return absl::InvalidArgumentError("options.compression is the unknown " +
                                      std::to_string(options.compression));
  }
  if ((options.flags & HVD_AVERAGE_OVER_CONTRIBUTORS) != 0 && op != HVD_AVERAGE) {
    return absl::InvalidArgumentError(
        "options: average over contributors is asked for, but options.op is not average");
  }
  if (!std::isfinite(options.prescale)) return NotFinite("prescale");
  if (!std::isfinite(options.postscale)) return NotFinite("postscale");
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadOptions(const hvd_options_t* given, hvd_options_t* options) {
  *options = HVD_OPTIONS_INIT;
  return CopyKnown("options", given, options);
}

absl::Status CheckTensor(const hvd_tensor_t* tensor, const char* what) {
  if (tensor == nullptr) return absl::InvalidArgumentError(std::string(what) + " is NULL");
  if (absl::Status fits = CheckSize(what, *tensor); !fits.ok()) return fits;
  if (DtypeBytes(static_cast<hvd_dtype_t>(tensor->dtype)) == 0) {
    return absl::InvalidArgumentError(std::string(what) + " has the unknown dtype " +
                                      std::to_string(tensor->dtype));
  }
  if (tensor->device_type != HVD_CPU && tensor->device_type != HVD_CUDA) {
    return absl::UnimplementedError(std::string(what) + " lies on the unknown device type " +
                                    std::to_string(tensor->device_type) +
                                    "; this version knows HVD_CPU and HVD_CUDA");
  }
  return CheckShape(*tensor, what);
}

std::string PlaceOf(const hvd_tensor_t& tensor) {
  if (tensor.device_type == HVD_CPU) return "in the CPU's memory";
  return "on GPU " + std::to_string(tensor.device_id);
}

bool SamePlace(const hvd_tensor_t& a, const hvd_tensor_t& b) {
  return a.device_type == b.device_type && (a.device_type == HVD_CPU || a.device_id == b.device_id);
}

size_t ElementsOf(const hvd_tensor_t& tensor) {
  size_t elements = 1;
  for (int d = 0; d < tensor.ndim; ++d) elements *= static_cast<size_t>(tensor.shape[d]);
  return elements;
}

absl::Status CheckData(const hvd_tensor_t& tensor, const char* what) {
  if (tensor.data != nullptr || ElementsOf(tensor) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(std::string(what) + ".data is NULL");
}

bool SameShape(const hvd_tensor_t& a, const hvd_tensor_t& b, int from) {
  if (a.ndim != b.ndim || a.dtype != b.dtype) return false;
  for (int d = from; d < a.ndim; ++d) {
    if (a.shape[d] != b.shape[d]) return false;
  }
  return true;
}

absl::Status CheckName(const char* name) {
  if (name == nullptr) return absl::OkStatus();
  if (strnlen(name, kMaxName + 1) > kMaxName) {
    return absl::InvalidArgumentError("options.name is longer than 4095 bytes");
  }
  if (!IsReserved(name)) return absl::OkStatus();
  return absl::InvalidArgumentError("options.name begins with the byte " +
                                    std::to_string(static_cast<int>(*name)) +
                                    ": such names are hvd's own; begin it with another");
}

absl::Status CheckOptions(const hvd_options_t& options, RequestKind kind) {
  if (options.reserved != 0) return absl::InvalidArgumentError("options.reserved is not 0");
  if (kind != RequestKind::kBroadcast && options.root != 0) {
    return absl::InvalidArgumentError("options.root is for broadcast only");
  }
  if (absl::Status named = CheckName(options.name); !named.ok()) return named;
  constexpr int32_t kKnown = HVD_AVERAGE_OVER_CONTRIBUTORS | HVD_REFUSE_JOINED | HVD_WAIT_ON_HOST;
  if ((options.flags & ~kKnown) != 0) {
    return absl::InvalidArgumentError("options.flags has unknown bits: " +
                                      std::to_string(options.flags));
  }
  if (IsPair(kind) && (options.flags & ~HVD_WAIT_ON_HOST) != 0) {
    return absl::InvalidArgumentError("options.flags is for collectives only");
  }
  if (options.result_fn != nullptr && !MayAllocate(kind)) {
    return absl::InvalidArgumentError(
        "options.result_fn is for allgather, alltoall and reduce-scatter only");
  }
  if (IsReduction(kind)) return CheckReductionOptions(options, kind);
  if (options.op != HVD_AVERAGE) return ForReductionsOnly("op");
  if (options.prescale != 1) return ForReductionsOnly("prescale");
  if (options.postscale != 1) return ForReductionsOnly("postscale");
  if (options.compression != HVD_COMPRESSION_NONE) return ForReductionsOnly("compression");
  if ((options.flags & HVD_AVERAGE_OVER_CONTRIBUTORS) != 0) {
    return ForReductionsOnly("flags: average over contributors");
  }
  return absl::OkStatus();
}

absl::Status PutReduction(const hvd_options_t& options, Signature* signature) {
  const auto dtype = static_cast<hvd_dtype_t>(signature->dtype);
  const absl::Status known = CheckReduction(
      {dtype, static_cast<hvd_op_t>(options.op), options.prescale, options.postscale});
  if (!known.ok()) {
    return absl::InvalidArgumentError("options." + std::string(known.message()));
  }
  const bool compressible = dtype == HVD_FLOAT32 || dtype == HVD_FLOAT64;
  signature->op = (options.flags & HVD_AVERAGE_OVER_CONTRIBUTORS) != 0
                      ? kAverageOfContributors
                      : static_cast<uint32_t>(options.op);
  signature->prescale = options.prescale;
  signature->postscale = options.postscale;
  signature->compression = compressible ? static_cast<uint32_t>(options.compression) : 0;
  return absl::OkStatus();
}

absl::Status CheckTelling(const hvd_options_t& options, bool asynchronous) {
  const char* given = nullptr;
  if (options.queue != nullptr) given = "queue";
  if (options.done != nullptr) given = "done";
  if (given == nullptr) return absl::OkStatus();
  if (!asynchronous) {
    return absl::InvalidArgumentError(std::string("options.") + given +
                                      " is for asynchronous collectives only");
  }
  if (options.done == nullptr || options.queue == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError("options has both done and queue; one of them can be told");
}

}  // namespace hvd::rt
