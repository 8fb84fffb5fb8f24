// SPDX-License-Identifier: Apache-2.0
#include "python/operators/mxnet/mx_array.h"

#include <utility>

namespace hvd::mx {
namespace {

constexpr std::array<std::pair<int, hvd_dtype_t>, 13> kTypes = {{
    {kFloat32, HVD_FLOAT32},
    {kFloat64, HVD_FLOAT64},
    {kFloat16, HVD_FLOAT16},
    {kUint8, HVD_UINT8},
    {kInt32, HVD_INT32},
    {kInt8, HVD_INT8},
    {kInt64, HVD_INT64},
    {kBool, HVD_BOOL},
    {kInt16, HVD_INT16},
    {kUint16, HVD_UINT16},
    {kUint32, HVD_UINT32},
    {kUint64, HVD_UINT64},
    {kBfloat16, HVD_BFLOAT16},
}};

// Ends the operation if MXNet refuses it: the engine takes the exception.
void Check(int failed) {
  if (failed != 0) throw std::runtime_error(mxnet.MXGetLastError());
}

}  // namespace

std::optional<hvd_dtype_t> DtypeOf(int type) {
  for (const auto& [theirs, ours] : kTypes) {
    if (theirs == type) return ours;
  }
  return std::nullopt;
}

Array::Array(NDArrayHandle handle) { Check(mxnet.MXShallowCopyNDArray(handle, &handle_)); }

Array::Array(const std::vector<int64_t>& shape, int type, const Array& like) {
  const Context context = like.context();
  Check(mxnet.MXNDArrayCreateEx64(shape.data(), static_cast<int>(shape.size()), context.type,
                                  context.id, 0, type, &handle_));
}

Array::~Array() {
  if (handle_ != nullptr) (void)mxnet.MXNDArrayFree(handle_);
}

Array::Array(Array&& other) noexcept
    : handle_(other.Release()), copy_(std::move(other.copy_)), shape_(std::move(other.shape_)) {}

NDArrayHandle Array::Release() { return std::exchange(handle_, nullptr); }

std::string Array::Problem() const {
  int storage = 0;
  Check(mxnet.MXNDArrayGetStorageType(handle_, &storage));
  if (storage != kDefaultStorage) {
    return "HVD_ERR_UNSUPPORTED: hvd.mxnet takes dense NDArrays only: array.tostype('default') "
           "makes one of a sparse one";
  }
  if (context().type == kGpu) {
    return "HVD_ERR_UNSUPPORTED: hvd.mxnet takes NDArrays in the CPU's memory only: "
           "array.as_in_context(mx.cpu()) copies one there";
  }
  if (!DtypeOf(type())) {
    return "HVD_ERR_UNSUPPORTED: hvd has no elements of MXNet's type " + std::to_string(type());
  }
  return "";
}

int Array::type() const {
  int type = 0;
  Check(mxnet.MXNDArrayGetDType(handle_, &type));
  return type;
}

Context Array::context() const {
  Context context = {};
  Check(mxnet.MXNDArrayGetContext(handle_, &context.type, &context.id));
  return context;
}

std::vector<int64_t> Array::shape() const {
  int ndim = 0;
  const int64_t* shape = nullptr;  // MXNet's, of this thread
  Check(mxnet.MXNDArrayGetShapeEx64(handle_, &ndim, &shape));
  return {shape, shape + (ndim > 0 ? ndim : 0)};
}

NDArrayHandle Array::RowByRow(bool writable) {
  if (mxnet.IsOwnLayout == nullptr || !mxnet.IsOwnLayout(chunk())) return handle_;
  if (writable) {
    mxnet.ToDefaultLayout(chunk());
    return handle_;
  }
  copy_ = std::make_unique<Copy>(handle_);
  return copy_->room.data();
}

hvd_tensor_t Array::Describe(bool writable) {
  hvd_tensor_t tensor = HVD_TENSOR_INIT;
  Check(mxnet.MXNDArrayGetData(RowByRow(writable), &tensor.data));
  shape_ = shape();
  tensor.shape = shape_.data();
  tensor.ndim = static_cast<int32_t>(shape_.size());
  tensor.dtype = DtypeOf(type()).value_or(HVD_UINT8);  // Problem() has seen it
  return tensor;
}

}  // namespace hvd::mx
