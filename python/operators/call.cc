#include "python/operators/call.h"

#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace hvd {
namespace {

using torch::headeronly::ScalarType;

int32_t DtypeOf(const Tensor& tensor) {
  const ScalarType type = tensor.scalar_type();
  switch (type) {
    case ScalarType::Byte:
      return HVD_UINT8;
    case ScalarType::Char:
      return HVD_INT8;
    case ScalarType::Short:
      return HVD_INT16;
    case ScalarType::Int:
      return HVD_INT32;
    case ScalarType::Long:
      return HVD_INT64;
    case ScalarType::Half:
      return HVD_FLOAT16;
    case ScalarType::Float:
      return HVD_FLOAT32;
    case ScalarType::Double:
      return HVD_FLOAT64;
    case ScalarType::Bool:
      return HVD_BOOL;
    case ScalarType::BFloat16:
      return HVD_BFLOAT16;
    default:
      break;
  }
  Refuse(std::string("Tensor type ") + torch::headeronly::toString(type) + " is not supported.");
}

int64_t ElementsOf(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

// torch's own words have gone to stderr.
void CheckTorch(AOTITorchError code) {
  if (code == AOTI_TORCH_SUCCESS) return;
  throw std::runtime_error("HVD_ERR_INTERNAL: torch could not make a tensor for the result");
}

template <typename T>
Tensor NewNumbers(const Tensor& like, ScalarType type, const std::vector<int64_t>& values) {
  Tensor made = torch::stable::new_empty(like, {static_cast<int64_t>(values.size())}, type);
  T* numbers = static_cast<T*>(made.mutable_data_ptr());
  for (const int64_t value : values) *numbers++ = static_cast<T>(value);
  return made;
}

}  // namespace

int32_t Arguments::NextInt32() {
  const int64_t value = Next<int64_t>();
  const bool fits = value >= 0 && value <= std::numeric_limits<int32_t>::max();
  return fits ? static_cast<int32_t>(value) : -1;
}

void Options::ReadReduction(Arguments* arguments) {
  values_.op = arguments->NextInt32();
  values_.prescale = arguments->Next<double>();
  values_.postscale = arguments->Next<double>();
  values_.compression = arguments->NextInt32();
  ReadSetAndName(arguments);
}

void Options::ReadRoot(Arguments* arguments) {
  values_.root = arguments->NextInt32();
  ReadSetAndName(arguments);
}

void Options::ReadSetAndName(Arguments* arguments) {
  values_.process_set = arguments->NextInt32();
  name_ = arguments->Next<std::string>();
  if (!name_.empty()) name_ = std::string(kind_) + "." + name_;
}

const hvd_options_t* Options::Get() {
  values_.name = name_.c_str();
  return &values_;
}

void Check(hvd_status_t status) {
  if (status == HVD_OK) return;
  throw std::runtime_error(std::string(hvd_status_name(status)) + ": " + hvd_last_error());
}

void Refuse(const std::string& why) { throw std::runtime_error("HVD_ERR_INVALID: " + why); }

Tensor Dense(const Tensor& tensor) {
  return tensor.is_contiguous() ? tensor : torch::stable::contiguous(tensor);
}

void CheckDense(const Tensor& tensor) {
  if (tensor.is_contiguous()) return;
  Refuse("Tensor is required to be contiguous.");
}

hvd_tensor_t Describe(const Tensor& tensor) {
  hvd_tensor_t description = HVD_TENSOR_INIT;
  const auto sizes = tensor.sizes();
  description.data = tensor.data_ptr();
  description.shape = sizes.data();
  description.ndim = static_cast<int32_t>(sizes.size());
  description.dtype = DtypeOf(tensor);
  return description;
}

Shape ShapeOf(const Tensor& tensor) {
  const auto sizes = tensor.sizes();
  return Shape(sizes.begin(), sizes.end());
}

Shape WithRows(Shape shape, int64_t rows) {
  if (shape.empty()) return {rows};
  shape.front() = rows;
  return shape;
}

Tensor NewTensor(const Tensor& like, const Shape& shape) {
  Shape strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<int64_t>(shape[i], 1);
  }
  int32_t dtype = 0;
  CheckTorch(aoti_torch_get_dtype(like.get(), &dtype));
  AtenTensorHandle made = nullptr;
  // Half of what torch::stable::new_empty takes, which asks the dispatcher.
  CheckTorch(aoti_torch_empty_strided(static_cast<int64_t>(shape.size()), shape.data(),
                                      strides.data(), dtype, aoti_torch_device_type_cpu(), 0,
                                      &made));
  return Tensor(made);
}

Tensor NewInt32s(const Tensor& like, const std::vector<int64_t>& values) {
  return NewNumbers<int32_t>(like, ScalarType::Int, values);
}

Tensor NewInt64s(const Tensor& like, const std::vector<int64_t>& values) {
  return NewNumbers<int64_t>(like, ScalarType::Long, values);
}

void Row::Add(const Tensor& tensor) {
  tensors_.push_back(tensor);
  descriptions_.push_back(Describe(tensor));
}

Results::~Results() {
  for (hvd_tensor_t& result : results_) hvd_free_result(&result);
}

Tensor Results::Copy(size_t index, const Tensor& like, std::optional<int64_t> rows) const {
  const hvd_tensor_t& result = results_[index];
  const Shape there(result.shape, result.shape + result.ndim);
  if (rows && there.front() > *rows) {
    Refuse("rows is " + std::to_string(*rows) + ", but " + std::to_string(there.front()) +
           " rows came; give more, or none");
  }
  const Shape shape = rows ? WithRows(there, *rows) : there;
  Tensor copy = NewTensor(like, shape);
  const size_t bytes = ElementsOf(there) * like.element_size();
  char* data = static_cast<char*>(copy.mutable_data_ptr());
  if (bytes > 0) std::memcpy(data, result.data, bytes);
  const size_t missing = ElementsOf(shape) * like.element_size() - bytes;
  if (missing > 0) std::memset(data + bytes, 0, missing);
  return copy;
}

}  // namespace hvd
