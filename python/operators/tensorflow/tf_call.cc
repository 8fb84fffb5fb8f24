// SPDX-License-Identifier: Apache-2.0
#include "python/operators/tensorflow/tf_call.h"

#include <array>
#include <optional>
#include <utility>

namespace hvd::tf {
namespace {

constexpr std::array<std::pair<int, hvd_dtype_t>, 17> kTypes = {{
    {kFloat, HVD_FLOAT32},
    {kDouble, HVD_FLOAT64},
    {kInt32, HVD_INT32},
    {kUint8, HVD_UINT8},
    {kInt16, HVD_INT16},
    {kInt8, HVD_INT8},
    {kComplex64, HVD_COMPLEX64},
    {kInt64, HVD_INT64},
    {kBool, HVD_BOOL},
    {kBfloat16, HVD_BFLOAT16},
    {kUint16, HVD_UINT16},
    {kComplex128, HVD_COMPLEX128},
    {kHalf, HVD_FLOAT16},
    {kUint32, HVD_UINT32},
    {kUint64, HVD_UINT64},
    {kFloat8E5m2, HVD_FLOAT8_E5M2},
    {kFloat8E4m3fn, HVD_FLOAT8_E4M3FN},
}};

std::optional<hvd_dtype_t> DtypeOf(int type) {
  for (const auto& [theirs, ours] : kTypes) {
    if (theirs == type) return ours;
  }
  return std::nullopt;
}

int TypeOf(int32_t dtype) {
  for (const auto& [theirs, ours] : kTypes) {
    if (ours == dtype) return theirs;
  }
  return kUint8;
}

// Horovod's programs catch these classes of errors: see hvd/_tensorflow/errors.
int CodeOf(hvd_status_t status) {
  switch (status) {
    case HVD_ERR_INVALID:
    case HVD_ERR_DUPLICATE:
      return kInvalidArgument;
    case HVD_ERR_MISMATCH:
    case HVD_ERR_NOT_INITIALIZED:
      return kFailedPrecondition;
    case HVD_ERR_ABORTED:
      return kAborted;
    case HVD_ERR_UNSUPPORTED:
      return kUnimplemented;
    default:
      return kInternal;
  }
}

// Returns the bytes of an element of a type that TypeOf gives.
size_t BytesOf(int type) {
  switch (type) {
    case kComplex128:
      return 16;
    case kDouble:
    case kInt64:
    case kUint64:
    case kComplex64:
      return 8;
    case kFloat:
    case kInt32:
    case kUint32:
      return 4;
    case kHalf:
    case kBfloat16:
    case kInt16:
    case kUint16:
      return 2;
    default:
      return 1;
  }
}

// For tensors without elements, whose memory TensorFlow may not have.
alignas(64) std::array<char, 64> nothing;

// A tensor that TensorFlow hands out: a view of what the kernel's context keeps.
class View {
 public:
  explicit View(TF_Tensor* tensor) : tensor_(tensor) {}
  ~View() {
    if (tensor_ != nullptr) tensorflow.TF_DeleteTensor(tensor_);
  }
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  void* data() const { return tensor_ == nullptr ? nullptr : tensorflow.TF_TensorData(tensor_); }
  int type() const { return tensorflow.TF_TensorType(tensor_); }
  size_t bytes() const { return tensorflow.TF_TensorByteSize(tensor_); }
  std::vector<int64_t> shape() const {
    std::vector<int64_t> shape(static_cast<size_t>(tensorflow.TF_NumDims(tensor_)));
    for (size_t i = 0; i < shape.size(); ++i) {
      shape[i] = tensorflow.TF_Dim(tensor_, static_cast<int>(i));
    }
    return shape;
  }

 private:
  TF_Tensor* const tensor_;
};

TF_Tensor* Input(TF_OpKernelContext* context, int index, Status* status) {
  TF_Tensor* tensor = nullptr;
  tensorflow.TF_GetInput(context, index, &tensor, status->get());
  return tensor;
}

}  // namespace

TfCall::TfCall(const CallAttributes& attributes, TF_OpKernelContext* context,
               std::function<void()> done)
    : context_(context), done_(std::move(done)) {
  request().kind = attributes.kind;
  request().name = attributes.name;
  request().contents = attributes.contents;
  request().options = attributes.options;
}

void TfCall::Read(Status* status) {
  const bool alltoall = request().kind == CallKind::kAlltoall;
  const int count = tensorflow.TF_NumInputs(context_) - (alltoall ? 1 : 0);
  const bool elementwise =
      request().kind == CallKind::kAllreduce || request().kind == CallKind::kBroadcast;
  for (int i = 0; i < count && status->ok(); ++i) {
    hvd_tensor_t input = ReadInput(i, status);
    if (status->ok() && elementwise) request().outputs.push_back(MakeOutput(i, &input, status));
    request().inputs.push_back(input);
  }
  if (alltoall && status->ok()) ReadSplits(count, status);
  if (elementwise) return;
  request().options.result_fn = &TfCall::AllocateResult;
  request().options.result_arg = this;
}

hvd_tensor_t TfCall::ReadInput(int index, Status* status) {
  hvd_tensor_t input = HVD_TENSOR_INIT;
  const View view(Input(context_, index, status));
  if (!status->ok()) return input;
  shapes_.push_back(view.shape());
  input.data = view.data();
  input.shape = shapes_.back().data();
  input.ndim = static_cast<int32_t>(shapes_.back().size());
  const std::optional<hvd_dtype_t> dtype = DtypeOf(view.type());
  if (dtype) {
    input.dtype = *dtype;
    bytes_ += view.bytes();
  } else {
    status->Set(kInvalidArgument, "HVD_ERR_INVALID: " + request().name +
                                      ": hvd has no elements of TensorFlow's type " +
                                      std::to_string(view.type()));
  }
  return input;
}

// The input's own memory where nobody else needs that: then the context has no such input any more.
hvd_tensor_t TfCall::MakeOutput(int index, hvd_tensor_t* input, Status* status) {
  int forwarded = -1;
  const View view(tensorflow.TF_ForwardInputOrAllocateOutput(
      context_, &index, 1, index, input->shape, input->ndim, &forwarded, status->get()));
  hvd_tensor_t output = *input;
  if (!status->ok()) return output;
  output.data = view.data();
  if (forwarded == index) input->data = output.data;
  return output;
}

void TfCall::ReadSplits(int index, Status* status) {
  const View view(Input(context_, index, status));
  if (!status->ok()) return;
  const auto* const splits = static_cast<const int64_t*>(view.data());
  const std::vector<int64_t> shape = view.shape();
  if (shape.size() != 1) {
    status->Set(kInvalidArgument, "HVD_ERR_INVALID: splits have one dimension");
    return;
  }
  request().splits.assign(splits, splits + shape[0]);
  const int64_t members = hvd_process_set_size(request().options.process_set);
  // A set that is none is refused by the call itself.
  const int64_t room = members < 0 ? 0 : members;
  received_splits_ = static_cast<int64_t*>(Allocate(1, kInt64, &room, 1));
  if (received_splits_ == nullptr) status->Set(kInternal, "HVD_ERR_INTERNAL: out of memory");
}

void* TfCall::Allocate(int index, int type, const int64_t* shape, int ndim) {
  size_t bytes = BytesOf(type);
  for (int i = 0; i < ndim; ++i) bytes *= static_cast<size_t>(shape[i]);
  Status status;
  const View view(
      tensorflow.TF_AllocateOutput(context_, index, type, shape, ndim, bytes, status.get()));
  if (!status.ok()) return nullptr;
  return bytes == 0 ? nothing.data() : view.data();
}

void* TfCall::AllocateResult(void* call, const int64_t* shape, int32_t ndim, int32_t dtype,
                             int32_t index) {
  return static_cast<TfCall*>(call)->Allocate(index, TypeOf(dtype), shape, ndim);
}

void TfCall::Fail(Status* status) {
  tensorflow.TF_OpKernelContext_Failure(context_, status->get());
  const std::function<void()> done = done_;
  done();
}

void TfCall::End(hvd_handle_t handle, hvd_status_t status) {
  if (status == HVD_OK && received_splits_ != nullptr) {
    status = hvd_wait_alltoall(handle, nullptr, received_splits_);
  }
  if (status == HVD_OK) {
    const std::function<void()> done = done_;
    done();
    return;
  }
  Status failed;
  failed.Set(CodeOf(status), ErrorText(status));
  Fail(&failed);
}

}  // namespace hvd::tf
