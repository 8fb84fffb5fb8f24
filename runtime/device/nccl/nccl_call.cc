// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/nccl/nccl_call.h"

#include <algorithm>

#include "runtime/device/caller_order.h"
#include "runtime/device/device_memory.h"
#include "runtime/device/nccl/nccl_rules.h"

namespace hvd::rt {
namespace {

// A tensor of a call, and its output's rows where these are not the input's.
struct Tensor {
  const void* input;
  const void* output;
  absl::Span<const int64_t> shape;
  int64_t output_rows;
};

bool IsEmpty(absl::Span<const int64_t> extents) {
  return std::any_of(extents.begin(), extents.end(), [](int64_t extent) { return extent == 0; });
}

// Whether this rank gets anything: an output of no bytes lies nowhere.
bool HasOutput(RequestKind kind, const Tensor& tensor, const EpochWorld& world) {
  if (kind == RequestKind::kAllreduce || kind == RequestKind::kBroadcast) {
    return !IsEmpty(tensor.shape);
  }
  const int64_t rows =
      kind == RequestKind::kReduceScatter
          ? ScatteredRows(tensor.shape[0], world.topology().size(), world.rank()).count
          : tensor.output_rows;
  return tensor.output != nullptr && rows > 0 && !IsEmpty(tensor.shape.subspan(1));
}

absl::Status CheckTensor(const GpuDevice& device, const Request& request, const Tensor& tensor,
                         const EpochWorld& world) {
  const RequestKind kind = request.signature.kind;
  const bool brings = kind != RequestKind::kBroadcast || request.root_index == world.rank();
  absl::Status checked;
  if (brings && !IsEmpty(tensor.shape)) checked = CheckOnDevice(device, tensor.input, "input");
  if (checked.ok() && tensor.output != tensor.input && HasOutput(kind, tensor, world)) {
    checked = CheckOnDevice(device, tensor.output, "output");
  }
  return checked;
}

absl::Status CheckMemory(const GpuDevice& device, const Request& request, const EpochWorld& world) {
  const RequestBuffers& buffers = request.buffers;
  const Signature& signature = request.signature;
  if (!signature.is_group()) {
    const absl::Span<const int64_t> shape(signature.shape.data(),
                                          static_cast<size_t>(signature.ndim));
    return CheckTensor(device, request, {buffers.input, buffers.output, shape, buffers.output_rows},
                       world);
  }
  absl::Status checked;
  for (const RequestPart& part : buffers.parts) {
    if (!checked.ok()) break;
    checked = CheckTensor(device, request, {part.input, part.output, part.shape, part.output_rows},
                          world);
  }
  return checked;
}

}  // namespace

bool GoesDirectly(absl::Span<const std::unique_ptr<Request>> requests, const DeviceRoute& route) {
  if (route.way() != DeviceRoute::Way::kNccl) return false;
  return std::all_of(requests.begin(), requests.end(), [](const auto& request) {
    return request->observer == nullptr && GoesByNccl(request->signature);
  });
}

absl::Status SubmitDirectly(absl::Span<const std::unique_ptr<Request>> requests, Gpus* gpus,
                            const ProcessSet& set) {
  const auto device = gpus->Find(requests[0]->buffers.device.id);
  if (!device.ok()) return device.status();
  if (absl::Status here = set.route->CheckDevice(*requests[0]); !here.ok()) return here;
  const auto order = std::make_shared<CallerOrder>(*device);
  {
    const GpuDevice::Scope scope(**device);
    for (const auto& request : requests) {
      absl::Status checked = CheckMemory(**device, *request, set.engine->world());
      if (!checked.ok()) return checked;
      request->buffers.device.order = order;
    }
    if (absl::Status noted = order->Note(requests); !noted.ok()) return noted;
  }
  return requests.size() == 1 ? set.engine->Submit(requests[0].get())
                              : set.engine->SubmitGroup(requests);
}

absl::Status OrderStream(const Request& request, void* stream) {
  const LaunchedEnd* const end = EndOf(request);
  if (end == nullptr) return absl::OkStatus();
  const GpuDevice::Scope scope(end->device());
  return end->event().MakeWait(static_cast<CudaStream>(stream));
}

absl::Status OrderCaller(const Request& request) {
  const LaunchedEnd* const end = EndOf(request);
  if (end == nullptr) return absl::OkStatus();
  const GpuDevice::Scope scope(end->device());
  absl::Status status;
  const CallerOrder* const order = request.buffers.device.order.get();
  for (void* stream : order->streams()) {
    if (status.ok()) status = end->event().MakeWait(static_cast<CudaStream>(stream));
  }
  if (status.ok() && request.buffers.device.waits_on_host) status = end->event().AwaitHere();
  return status;
}

}  // namespace hvd::rt
