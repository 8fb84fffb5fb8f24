#include "runtime/api/check.h"

#include <cstdint>
#include <cstring>

#include "runtime/collective/collectives.h"

namespace hvd {
namespace {

constexpr size_t kMaxName = 4095;

// The first version of a struct is the least that a caller can have; a longer one is from a newer
// header whose further fields this library does not know: they must then be zero, which we cannot
// see, so they are refused.
template <class Struct>
absl::Status CheckStruct(const Struct* value, const char* what) {
  if (value->struct_size == sizeof(Struct)) return absl::OkStatus();
  return absl::InvalidArgumentError(std::string(what) + ".struct_size is " +
                                    std::to_string(value->struct_size) + ", this libhvd knows " +
                                    std::to_string(sizeof(Struct)) +
                                    "; initialise the struct with its HVD_*_INIT");
}

absl::Status CheckShape(const hvd_tensor_t& tensor, const char* what) {
  const std::string name(what);
  if (tensor.ndim < 0 || tensor.ndim > kMaxDimensions) {
    return absl::InvalidArgumentError(name + " has " + std::to_string(tensor.ndim) +
                                      " dimensions; 0 to 16 are possible");
  }
  if (tensor.ndim > 0 && tensor.shape == nullptr) {
    return absl::InvalidArgumentError(name + ".shape is NULL");
  }
  size_t elements = 1;
  for (int d = 0; d < tensor.ndim; ++d) {
    if (tensor.shape[d] < 0) {
      return absl::InvalidArgumentError(name + ".shape[" + std::to_string(d) + "] is negative");
    }
    if (__builtin_mul_overflow(elements, static_cast<size_t>(tensor.shape[d]), &elements) ||
        elements > SIZE_MAX / 16) {
      return absl::InvalidArgumentError(name + " has more elements than memory can hold");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckTensor(const hvd_tensor_t* tensor, const char* what) {
  if (tensor == nullptr) return absl::InvalidArgumentError(std::string(what) + " is NULL");
  if (absl::Status status = CheckStruct(tensor, what); !status.ok()) return status;
  if (DtypeBytes(static_cast<hvd_dtype_t>(tensor->dtype)) == 0) {
    return absl::InvalidArgumentError(std::string(what) + " has the unknown dtype " +
                                      std::to_string(tensor->dtype));
  }
  if (tensor->device_type != HVD_CPU) {
    return absl::UnimplementedError(std::string(what) +
                                    " is not in the CPU's memory; this version reduces CPU "
                                    "tensors only, so copy it to the host first");
  }
  return CheckShape(*tensor, what);
}

absl::Status CheckOptions(const hvd_options_t& options, RequestKind kind, Request* request) {
  if (absl::Status status = CheckStruct(&options, "options"); !status.ok()) return status;
  if (options.process_set != HVD_GLOBAL_PROCESS_SET) {
    return absl::UnimplementedError("process set " + std::to_string(options.process_set) +
                                    " does not exist; 0 (all ranks) does");
  }
  if (options.reserved != 0) return absl::InvalidArgumentError("options.reserved is not 0");
  if (kind != RequestKind::kBroadcast && options.root != 0) {
    return absl::InvalidArgumentError("options.root is for broadcast only");
  }
  if (kind != RequestKind::kAllreduce && options.op != HVD_AVERAGE) {
    return absl::InvalidArgumentError("options.op is for allreduce only");
  }
  if (options.name != nullptr) {
    if (strnlen(options.name, kMaxName + 1) > kMaxName) {
      return absl::InvalidArgumentError("options.name is longer than 4095 bytes");
    }
    request->name = options.name;
  }
  return absl::OkStatus();
}

absl::Status CheckOp(int32_t op, hvd_dtype_t dtype) {
  if (op != HVD_AVERAGE && op != HVD_SUM && op != HVD_MIN && op != HVD_MAX && op != HVD_PRODUCT) {
    return absl::InvalidArgumentError("options.op is the unknown " + std::to_string(op));
  }
  if (op == HVD_AVERAGE && dtype == HVD_BOOL) {
    return absl::InvalidArgumentError(
        "bool tensors have no average; use HVD_SUM (or) or HVD_MIN (and)");
  }
  return absl::OkStatus();
}

bool SameShape(const hvd_tensor_t& a, const hvd_tensor_t& b, int from) {
  if (a.ndim != b.ndim || a.dtype != b.dtype) return false;
  for (int d = from; d < a.ndim; ++d) {
    if (a.shape[d] != b.shape[d]) return false;
  }
  return true;
}

absl::Status CheckOutput(const Call& call, const Signature& signature, Request* request) {
  const bool gathers = call.kind == RequestKind::kAllgather;
  if (gathers && call.output == nullptr) return absl::OkStatus();
  if (absl::Status status = CheckTensor(call.output, "output"); !status.ok()) return status;
  if (!SameShape(*call.input, *call.output, gathers ? 1 : 0)) {
    return absl::InvalidArgumentError(
        gathers ? "output must have input's dtype and its shape beyond the first dimension"
                : "output must have input's dtype and shape");
  }
  request->output = call.output->data;
  request->output_rows = gathers ? call.output->shape[0] : 0;
  const size_t elements = gathers
                              ? static_cast<size_t>(request->output_rows) * signature.row_elements()
                              : signature.elements();
  if (request->output == nullptr && elements > 0) {
    return absl::InvalidArgumentError("output.data is NULL");
  }
  // An allgather with an output of no rows still has an output: the empty one.
  static char nowhere;
  if (request->output == nullptr) request->output = &nowhere;
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckCall(const Call& call, int world_size, Request* request) {
  Signature& signature = request->signature;
  signature.kind = call.kind;
  const hvd_options_t defaults = HVD_OPTIONS_INIT;
  const hvd_options_t& options = call.options != nullptr ? *call.options : defaults;
  if (absl::Status status = CheckOptions(options, call.kind, request); !status.ok()) return status;
  request->unnamed = request->name.empty();
  if (call.kind == RequestKind::kBarrier) return absl::OkStatus();

  if (absl::Status status = CheckTensor(call.input, "input"); !status.ok()) return status;
  signature.dtype = static_cast<uint32_t>(call.input->dtype);
  signature.ndim = call.input->ndim;
  for (int d = 0; d < signature.ndim; ++d) signature.shape[d] = call.input->shape[d];
  request->input = call.input->data;
  if (request->input == nullptr && signature.elements() > 0) {
    return absl::InvalidArgumentError("input.data is NULL");
  }
  if (call.kind == RequestKind::kAllgather && signature.ndim == 0) {
    return absl::InvalidArgumentError(
        "an allgather concatenates along the first dimension, and a scalar has none; give it the "
        "shape [1]");
  }
  if (call.kind == RequestKind::kAllreduce) {
    if (absl::Status status = CheckOp(options.op, static_cast<hvd_dtype_t>(signature.dtype));
        !status.ok()) {
      return status;
    }
    signature.op = static_cast<uint32_t>(options.op);
  }
  if (call.kind == RequestKind::kBroadcast) {
    if (options.root < 0 || options.root >= world_size) {
      return absl::InvalidArgumentError("root rank " + std::to_string(options.root) +
                                        " is not one of the " + std::to_string(world_size) +
                                        " ranks");
    }
    signature.root = options.root;
  }
  return CheckOutput(call, signature, request);
}

}  // namespace hvd
