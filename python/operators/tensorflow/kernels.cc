// SPDX-License-Identifier: Apache-2.0
#include "python/operators/tensorflow/kernels.h"

#include <cstring>
#include <exception>
#include <memory>
#include <utility>

#include "python/operators/calls/calls_by_name.h"
#include "python/operators/tensorflow/tf_call.h"

namespace hvd::tf {
namespace {

int64_t Number(TF_OpKernelConstruction* node, const char* name, Status* status) {
  int64_t number = 0;
  if (status->ok()) {
    tensorflow.TF_OpKernelConstruction_GetAttrInt64(node, name, &number, status->get());
  }
  return number;
}

// One that the C ABI has 32 bits for: none may become another by being cut.
int32_t Number32(TF_OpKernelConstruction* node, const char* name, Status* status) {
  const int64_t number = Number(node, name, status);
  if (status->ok() && number != static_cast<int32_t>(number)) {
    status->Set(kInvalidArgument, std::string("HVD_ERR_INVALID: ") + name + " is " +
                                      std::to_string(number) + ": too large a number");
  }
  return static_cast<int32_t>(number);
}

// TensorFlow's attributes have no more than float32: the bits of a double are a number of theirs.
double Double(TF_OpKernelConstruction* node, const char* name, Status* status) {
  const int64_t bits = Number(node, name, status);
  double value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

std::string Text(TF_OpKernelConstruction* node, const char* name, Status* status) {
  int32_t count = 0, bytes = 0;
  if (!status->ok()) return "";
  tensorflow.TF_OpKernelConstruction_GetAttrSize(node, name, &count, &bytes, status->get());
  std::string text(status->ok() ? static_cast<size_t>(bytes) : 0, '\0');
  if (text.empty()) return text;
  tensorflow.TF_OpKernelConstruction_GetAttrString(node, name, text.data(), text.size(),
                                                   status->get());
  return text;
}

template <CallKind kind>
void* CreateCollective(TF_OpKernelConstruction* node) {
  Status status;
  auto attributes = std::make_unique<CallAttributes>();
  attributes->kind = kind;
  attributes->name = Text(node, "call_name", &status);
  attributes->contents = Text(node, "contents", &status);
  hvd_options_t& options = attributes->options;
  options.process_set = Number32(node, "process_set", &status);
  options.op = Number32(node, "op", &status);
  options.root = Number32(node, "root", &status);
  options.prescale = Double(node, "prescale", &status);
  options.postscale = Double(node, "postscale", &status);
  options.compression = Number32(node, "compression", &status);
  options.flags = Number32(node, "flags", &status);
  if (status.ok()) return attributes.release();
  tensorflow.TF_OpKernelConstruction_Failure(node, status.get());
  return nullptr;
}

void DeleteCollective(void* kernel) { delete static_cast<CallAttributes*>(kernel); }

// `callback` is a std::function on TensorFlow's stack.
void ComputeCollective(void* kernel, TF_OpKernelContext* context,
                       TF_AsyncOpKernelDoneCallback* callback) {
  auto call = std::make_unique<TfCall>(*static_cast<const CallAttributes*>(kernel), context,
                                       *reinterpret_cast<std::function<void()>*>(callback));
  Status status;
  try {
    call->Read(&status);
  } catch (const std::exception& thrown) {
    status.Set(kInternal, std::string("HVD_ERR_INTERNAL: ") + thrown.what());
  }
  if (status.ok()) {
    CallsByName::Get().Start(std::move(call));
  } else {
    call->Fail(&status);
  }
}

struct Place {
  int64_t what = 0;
  int32_t process_set = 0;
};

void* CreatePlace(TF_OpKernelConstruction* node) {
  Status status;
  auto place = std::make_unique<Place>();
  place->what = Number(node, "what", &status);
  place->process_set = Number32(node, "process_set", &status);
  if (status.ok()) return place.release();
  tensorflow.TF_OpKernelConstruction_Failure(node, status.get());
  return nullptr;
}

void DeletePlace(void* kernel) { delete static_cast<Place*>(kernel); }

// As hvd.tensorflow numbers them.
int32_t Answer(const Place& place) {
  switch (place.what) {
    case 0:
      return hvd_process_set_size(place.process_set);
    case 1:
      return hvd_rank();
    case 2:
      return hvd_local_size();
    case 3:
      return hvd_local_rank();
    default:
      return hvd_process_set_rank(place.process_set) < 0 ? 0 : 1;
  }
}

void ComputePlace(void* kernel, TF_OpKernelContext* context) {
  Status status;
  if (hvd_is_initialized() == 0) {
    status.Set(kFailedPrecondition,
               "HVD_ERR_NOT_INITIALIZED: hvd has not been initialized; use hvd.init()");
    tensorflow.TF_OpKernelContext_Failure(context, status.get());
    return;
  }
  const int32_t answer = Answer(*static_cast<const Place*>(kernel));
  TF_Tensor* const output =
      tensorflow.TF_AllocateOutput(context, 0, kInt32, nullptr, 0, sizeof answer, status.get());
  if (!status.ok()) {
    tensorflow.TF_OpKernelContext_Failure(context, status.get());
    return;
  }
  std::memcpy(tensorflow.TF_TensorData(output), &answer, sizeof answer);
  tensorflow.TF_DeleteTensor(output);
}

void* CreateRefusal(TF_OpKernelConstruction* node) {
  Status status;
  status.Set(kUnimplemented,
             "HVD_ERR_UNSUPPORTED: XLA cannot compile hvd's calls: leave them out of what has "
             "jit_compile=True, or say jit_compile=False (Keras: model.compile(..., "
             "jit_compile=False))");
  tensorflow.TF_OpKernelConstruction_Failure(node, status.get());
  return nullptr;
}

void ComputeNothing(void*, TF_OpKernelContext*) {}
void DeleteNothing(void*) {}

}  // namespace

void RegisterCollectiveKernels(Status* status) {
  constexpr CreateKernel kCreate[] = {
      CreateCollective<CallKind::kAllreduce>, CreateCollective<CallKind::kAllgather>,
      CreateCollective<CallKind::kReducescatter>, CreateCollective<CallKind::kBroadcast>,
      CreateCollective<CallKind::kAlltoall>};
  for (size_t i = 0; i < std::size(kCreate) && status->ok(); ++i) {
    tensorflow.TF_RegisterKernelBuilder(
        kCollectiveOps[i],
        tensorflow.TF_NewAsyncKernelBuilder(kCollectiveOps[i], "CPU", kCreate[i], ComputeCollective,
                                            DeleteCollective),
        status->get());
  }
}

void RegisterPlaceKernel(Status* status) {
  if (!status->ok()) return;
  tensorflow.TF_RegisterKernelBuilder(
      kPlaceOp,
      tensorflow.TF_NewKernelBuilder(kPlaceOp, "CPU", CreatePlace, ComputePlace, DeletePlace),
      status->get());
}

void RegisterRefusals(Status* status) {
  for (const char* const device : {"XLA_CPU_JIT", "XLA_GPU_JIT"}) {
    for (const char* const op : kCollectiveOps) {
      if (!status->ok()) return;
      const std::string name = std::string(op) + "." + device;
      tensorflow.TF_RegisterKernelBuilder(
          name.c_str(),
          tensorflow.TF_NewKernelBuilder(op, device, CreateRefusal, ComputeNothing, DeleteNothing),
          status->get());
    }
  }
}

}  // namespace hvd::tf
