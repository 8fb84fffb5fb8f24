#include "python/operators/jax/call.h"

#include <cstring>
#include <optional>
#include <utility>

namespace hvd::xla {
namespace {

std::optional<hvd_dtype_t> DtypeOf(DataType type) {
  switch (type) {
    case kPred:
      return HVD_BOOL;
    case kS8:
      return HVD_INT8;
    case kS16:
      return HVD_INT16;
    case kS32:
      return HVD_INT32;
    case kS64:
      return HVD_INT64;
    case kU8:
      return HVD_UINT8;
    case kU16:
      return HVD_UINT16;
    case kU32:
      return HVD_UINT32;
    case kU64:
      return HVD_UINT64;
    case kF16:
      return HVD_FLOAT16;
    case kF32:
      return HVD_FLOAT32;
    case kF64:
      return HVD_FLOAT64;
    case kBf16:
      return HVD_BFLOAT16;
    case kC64:
      return HVD_COMPLEX64;
    case kC128:
      return HVD_COMPLEX128;
    case kF8E5m2:
      return HVD_FLOAT8_E5M2;
    case kF8E4m3fn:
      return HVD_FLOAT8_E4M3FN;
  }
  return std::nullopt;
}

template <class Number>
Number NumberOf(const Scalar& scalar) {
  Number number = 0;
  std::memcpy(&number, scalar.value, sizeof number);
  return number;
}

}  // namespace

Error* MakeError(const Api& api, ErrorCode code, const std::string& message) {
  ErrorCreateArgs args = {sizeof args, nullptr, message.c_str(), code};
  return api.error_create(&args);
}

Call* Call::Make(CallFrame* frame, Submit submit, Error** error) {
  auto* const call = new Call(submit);
  *error = call->Read(*frame);
  if (*error == nullptr) {
    FutureCreateArgs args = {sizeof args, nullptr, nullptr};
    *error = frame->api->future_create(&args);
    call->future_ = frame->future = args.future;
  }
  if (*error == nullptr) return call;
  delete call;
  return nullptr;
}

Error* Call::Read(const CallFrame& frame) {
  api_ = frame.api;
  for (int64_t i = 0; i < frame.attributes.size; ++i) ReadAttribute(frame.attributes, i);
  if (Error* error = ReadBuffers(frame, frame.arguments, &inputs_)) return error;
  return ReadBuffers(frame, frame.results, &outputs_);
}

// Those that hvd.jax gives; of their types it takes care.
void Call::ReadAttribute(const Attributes& attributes, int64_t index) {
  const Span& text = *attributes.names[index];
  const std::string name(text.data, text.size);
  if (attributes.types[index] == kStringAttribute) {
    const auto& value = *static_cast<const Span*>(attributes.values[index]);
    if (name == "name") name_.assign(value.data, value.size);
    return;
  }
  if (attributes.types[index] != kScalarAttribute) return;
  const auto& value = *static_cast<const Scalar*>(attributes.values[index]);
  if (name == "op") options_.op = NumberOf<int32_t>(value);
  if (name == "root") options_.root = NumberOf<int32_t>(value);
  if (name == "process_set") options_.process_set = NumberOf<int32_t>(value);
  if (name == "compression") options_.compression = NumberOf<int32_t>(value);
  if (name == "prescale") options_.prescale = NumberOf<double>(value);
  if (name == "postscale") options_.postscale = NumberOf<double>(value);
}

Error* Call::ReadBuffers(const CallFrame& frame, const Buffers& buffers,
                         std::vector<hvd_tensor_t>* tensors) {
  for (int64_t i = 0; i < buffers.size; ++i) {
    const Buffer& buffer = *buffers.buffers[i];
    const std::optional<hvd_dtype_t> dtype = DtypeOf(buffer.dtype);
    if (!dtype) {
      return MakeError(*frame.api, kInvalidArgument,
                       name_ + ": hvd has no elements of XLA's type " +
                           std::to_string(static_cast<int>(buffer.dtype)));
    }
    hvd_tensor_t tensor = HVD_TENSOR_INIT;
    tensor.data = buffer.data;
    tensor.shape = buffer.dims;
    tensor.ndim = static_cast<int32_t>(buffer.rank);
    tensor.dtype = *dtype;
    tensors->push_back(tensor);
  }
  return nullptr;
}

bool Call::Begin(std::function<void()> ended) {
  ended_ = std::move(ended);
  options_.name = name_.c_str();
  options_.done = &Call::Done;
  options_.done_arg = this;
  hvd_handle_t handle = 0;
  const hvd_status_t status = submit_(*this, options_, &handle);
  if (status != HVD_OK) End(status);
  return status == HVD_OK;
}

// The end of a future may go on with the program on this thread.
void Call::End(hvd_status_t status) {
  if (status == HVD_OK) {
    FutureSetAvailableArgs args = {sizeof args, nullptr, future_};
    (void)api_->future_set_available(&args);
    return;
  }
  const std::string text = std::string(hvd_status_name(status)) + ": " + hvd_last_error();
  FutureSetErrorArgs args = {
      sizeof args, nullptr, future_,
      MakeError(*api_, status == HVD_ERR_ABORTED ? kAborted : kInternal, text)};
  (void)api_->future_set_error(&args);
}

void Call::Done(void* self, hvd_handle_t handle, hvd_status_t status) {
  auto* const call = static_cast<Call*>(self);
  const std::function<void()> ended = std::move(call->ended_);
  call->End(status);
  (void)hvd_release(handle);
  ended();
}

}  // namespace hvd::xla
