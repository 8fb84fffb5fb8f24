// SPDX-License-Identifier: Apache-2.0
#include "python/operators/call.h"

#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "python/operators/gpu.h"

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
    case ScalarType::UInt16:
      return HVD_UINT16;
    case ScalarType::UInt32:
      return HVD_UINT32;
    case ScalarType::UInt64:
      return HVD_UINT64;
    case ScalarType::Float8_e4m3fn:
      return HVD_FLOAT8_E4M3FN;
    case ScalarType::Float8_e5m2:
      return HVD_FLOAT8_E5M2;
    case ScalarType::ComplexFloat:
      return HVD_COMPLEX64;
    case ScalarType::ComplexDouble:
      return HVD_COMPLEX128;
    default:
      break;
  }
  Refuse(std::string("Tensor type ") + torch::headeronly::toString(type) + " is not supported.");
}

// torch's own words have gone to stderr.
void CheckTorch(AOTITorchError code) {
  if (code == AOTI_TORCH_SUCCESS) return;
  throw std::runtime_error("HVD_ERR_INTERNAL: torch could not make a tensor for the result");
}

struct Kind {
  int32_t dtype = 0;
  int32_t device_type = aoti_torch_device_type_cpu();
  int32_t device = 0;
};

// Half of what torch::stable::new_empty takes, which asks the dispatcher.
Tensor NewOf(const Kind& kind, const Shape& shape) {
  Shape strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<int64_t>(shape[i], 1);
  }
  AtenTensorHandle made = nullptr;
  CheckTorch(aoti_torch_empty_strided(static_cast<int64_t>(shape.size()), shape.data(),
                                      strides.data(), kind.dtype, kind.device_type, kind.device,
                                      &made));
  return Tensor(made);
}

Kind KindOf(const Tensor& tensor) {
  Kind kind;
  CheckTorch(aoti_torch_get_dtype(tensor.get(), &kind.dtype));
  CheckTorch(aoti_torch_get_device_type(tensor.get(), &kind.device_type));
  if (kind.device_type == aoti_torch_device_type_cpu()) return kind;
  CheckTorch(aoti_torch_get_device_index(tensor.get(), &kind.device));
  return kind;
}

Tensor CopyOf(const Tensor& tensor, const Kind& kind) {
  Tensor made = NewOf(kind, ShapeOf(tensor));
  torch::stable::copy_(made, tensor);
  return made;
}

template <typename T>
Tensor NewNumbers(int32_t dtype, const std::vector<int64_t>& values) {
  Kind kind;
  kind.dtype = dtype;
  Tensor made = NewOf(kind, {static_cast<int64_t>(values.size())});
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

void Options::SetResults(decltype(hvd_options_t::result_fn) give, void* arg) {
  values_.result_fn = give;
  values_.result_arg = arg;
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
  if (tensor.is_cuda()) {
    description.device_type = HVD_CUDA;
    description.device_id = tensor.get_device_index();
    description.stream = CurrentStream(description.device_id);
  }
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

Tensor NewTensor(const Tensor& like, const Shape& shape) { return NewOf(KindOf(like), shape); }

Tensor NewInt32s(const std::vector<int64_t>& values) {
  return NewNumbers<int32_t>(aoti_torch_dtype_int32(), values);
}

Tensor NewInt64s(const std::vector<int64_t>& values) {
  return NewNumbers<int64_t>(aoti_torch_dtype_int64(), values);
}

Tensor Beside(const Tensor& like, const Tensor& tensor) {
  if (!like.is_cuda()) return tensor;
  Kind kind = KindOf(like);
  kind.dtype = KindOf(tensor).dtype;
  return CopyOf(tensor, kind);
}

Tensor OnHost(const Tensor& tensor) {
  if (tensor.is_cpu()) return tensor;
  Kind kind;
  kind.dtype = KindOf(tensor).dtype;
  return CopyOf(tensor, kind);
}

void Row::Add(const Tensor& tensor) {
  tensors_.push_back(tensor);
  descriptions_.push_back(Describe(tensor));
}

Results::Results(std::vector<Tensor> likes, Options* options, std::optional<int64_t> rows)
    : likes_(std::move(likes)), rows_(rows), made_(likes_.size()) {
  if (!likes_.empty() && likes_[0].is_cuda()) stream_ = CurrentStream(likes_[0].get_device_index());
  options->SetResults(Give, this);
}

void* Results::Give(void* results, const int64_t* shape, int32_t ndim, int32_t,
                    int32_t index) noexcept {
  try {
    auto* all = static_cast<Results*>(results);
    const Tensor& like = all->likes_[static_cast<size_t>(index)];
    std::optional<StreamGuard> guard;
    if (like.is_cuda()) guard.emplace(all->stream_, like.get_device_index());
    const Tensor made = all->Make(static_cast<size_t>(index), Shape(shape, shape + ndim));
    return made.mutable_data_ptr();
  } catch (const std::exception&) {
    return nullptr;  // libhvd says that there is no memory
  }
}

Tensor Results::Make(size_t index, const Shape& shape) {
  const int64_t rows = std::max(shape.front(), rows_.value_or(0));
  Tensor made = NewTensor(likes_[index], WithRows(shape, rows));
  if (rows > shape.front()) {
    Tensor rest = torch::stable::narrow(made, 0, shape.front(), rows - shape.front());
    torch::stable::zero_(rest);
  }
  made_[index] = {made, shape.front()};
  return made;
}

Tensor Results::At(size_t index) const {
  const Made& made = made_[index];
  if (rows_ && made.rows > *rows_) {
    Refuse("rows is " + std::to_string(*rows_) + ", but " + std::to_string(made.rows) +
           " rows came; give more, or none");
  }
  return made.tensor.value();
}

std::vector<Tensor> Results::All() const {
  std::vector<Tensor> all;
  for (size_t i = 0; i < made_.size(); ++i) all.push_back(At(i));
  return all;
}

}  // namespace hvd
