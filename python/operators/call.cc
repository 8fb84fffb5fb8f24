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

Results::Results(std::vector<Tensor> likes, Options* options, std::optional<int64_t> rows)
    : likes_(std::move(likes)), rows_(rows), made_(likes_.size()) {
  options->SetResults(Give, this);
}

void* Results::Give(void* results, const int64_t* shape, int32_t ndim, int32_t,
                    int32_t index) noexcept {
  try {
    auto* all = static_cast<Results*>(results);
    const Tensor made = all->Make(static_cast<size_t>(index), Shape(shape, shape + ndim));
    return made.mutable_data_ptr();
  } catch (const std::exception&) {
    return nullptr;  // libhvd says that there is no memory
  }
}

Tensor Results::Make(size_t index, const Shape& shape) {
  const int64_t rows = std::max(shape.front(), rows_.value_or(0));
  const Tensor made = NewTensor(likes_[index], WithRows(shape, rows));
  const size_t there = ElementsOf(shape) * made.element_size();
  const size_t bytes = made.numel() * made.element_size();
  if (bytes > there) {
    std::memset(static_cast<char*>(made.mutable_data_ptr()) + there, 0, bytes - there);
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
