// SPDX-License-Identifier: Apache-2.0
#include "python/operators/jax/xla_call.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <numeric>
#include <optional>

#include "python/operators/jax/continuations.h"
#include "python/operators/jax/under_way.h"

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

// The future of the call that begins on this thread.
thread_local const Future* beginning = nullptr;

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

bool ReadRunId(const CallFrame& frame, int64_t* run) {
  if (frame.api->struct_size < offsetof(Api, run_id_get) + sizeof frame.api->run_id_get) {
    return false;
  }
  RunIdGetArgs args = {sizeof args, nullptr, frame.context, 0};
  (void)frame.api->run_id_get(&args);
  *run = args.run_id;
  return true;
}

XlaCall::Beginning::Beginning(const XlaCall& call) { beginning = call.future_; }
XlaCall::Beginning::~Beginning() { beginning = nullptr; }

std::unique_ptr<XlaCall> XlaCall::Make(CallFrame* frame, CallKind kind, Error** error) {
  std::unique_ptr<XlaCall> call(new XlaCall);
  call->request().kind = kind;
  *error = call->Read(*frame);
  if (*error == nullptr && UnderWay::Get().IsRefused(call->key())) {
    *error = MakeError(*frame->api, kInternal, call->MismatchText());
  }
  if (*error == nullptr) {
    FutureCreateArgs args = {sizeof args, nullptr, nullptr};
    *error = frame->api->future_create(&args);
    call->future_ = frame->future = args.future;
  }
  int64_t run = 0;
  if (*error == nullptr && ReadRunId(*frame, &run)) {
    UnderWay::Get().Add(call.get(), call->key(), run);
  }
  return *error == nullptr ? std::move(call) : nullptr;
}

XlaCall::~XlaCall() { UnderWay::Get().Remove(this); }

Error* XlaCall::Read(const CallFrame& frame) {
  api_ = frame.api;
  for (int64_t i = 0; i < frame.attributes.size; ++i) ReadAttribute(frame.attributes, i);
  // Behind the inputs, of which each has its result, stands what nobody reads.
  Buffers inputs = frame.arguments;
  inputs.size = std::min(inputs.size, frame.results.size);
  if (Error* error = ReadBuffers(frame, inputs, &request().inputs)) return error;
  for (const hvd_tensor_t& input : request().inputs) {
    elements_ += std::accumulate(input.shape, input.shape + input.ndim, int64_t{1},
                                 std::multiplies<int64_t>());
  }
  return ReadBuffers(frame, frame.results, &request().outputs);
}

// Reads one of the attributes that hvd.jax gives; hvd.jax takes care of their types.
void XlaCall::ReadAttribute(const Attributes& attributes, int64_t index) {
  const Span& text = *attributes.names[index];
  const std::string name(text.data, text.size);
  if (attributes.types[index] == kStringAttribute) {
    const auto& value = *static_cast<const Span*>(attributes.values[index]);
    if (name == "name") request().name.assign(value.data, value.size);
    if (name == "contents") request().contents.assign(value.data, value.size);
    return;
  }
  if (attributes.types[index] != kScalarAttribute) return;
  const auto& value = *static_cast<const Scalar*>(attributes.values[index]);
  hvd_options_t& options = request().options;
  if (name == "op") options.op = NumberOf<int32_t>(value);
  if (name == "root") options.root = NumberOf<int32_t>(value);
  if (name == "process_set") options.process_set = NumberOf<int32_t>(value);
  if (name == "compression") options.compression = NumberOf<int32_t>(value);
  if (name == "prescale") options.prescale = NumberOf<double>(value);
  if (name == "postscale") options.postscale = NumberOf<double>(value);
}

Error* XlaCall::ReadBuffers(const CallFrame& frame, const Buffers& buffers,
                            std::vector<hvd_tensor_t>* tensors) {
  for (int64_t i = 0; i < buffers.size; ++i) {
    const Buffer& buffer = *buffers.buffers[i];
    const std::optional<hvd_dtype_t> dtype = DtypeOf(buffer.dtype);
    if (!dtype) {
      return MakeError(*frame.api, kInvalidArgument,
                       request().name + ": hvd has no elements of XLA's type " +
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

// libhvd's, unless another reason is known.
std::string XlaCall::MismatchText() const {
  const std::string judgement = UnderWay::Get().Judgement(key());
  if (judgement.empty()) return ErrorText(HVD_ERR_MISMATCH);
  return std::string(hvd_status_name(HVD_ERR_MISMATCH)) + ": " + judgement;
}

void XlaCall::End(hvd_handle_t, hvd_status_t status) {
  Error* error = nullptr;
  if (status != HVD_OK) {
    const std::string text = status == HVD_ERR_MISMATCH ? MismatchText() : ErrorText(status);
    error = MakeError(*api_, status == HVD_ERR_ABORTED ? kAborted : kInternal, text);
  }
  const FutureEnd end = {api_, future_, error};
  if (status == HVD_ERR_MISMATCH && UnderWay::Get().Hold(end)) return;
  if (future_ == beginning) {
    EndFuture(end);
  } else {
    Continuations::Get().Add(end);
  }
}

}  // namespace hvd::xla
