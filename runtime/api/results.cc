// SPDX-License-Identifier: Apache-2.0
#include "runtime/api/results.h"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "runtime/device/nccl/nccl_call.h"
#include "runtime/device/staged/staged_call.h"
#include "runtime/engine/engine.h"

namespace hvd::rt {
namespace {

void GiveTensor(void** data, const std::vector<int64_t>& shape, const Request& request,
                hvd_tensor_t* result) {
  *result = HVD_TENSOR_INIT;
  result->dtype = static_cast<int32_t>(request.signature.dtype);
  result->device_type = request.signature.device_type;
  result->device_id = request.buffers.device.id;
  result->stream = request.buffers.device.stream;
  if (*data == nullptr) return;
  auto* copy = static_cast<int64_t*>(malloc(sizeof(int64_t) * std::max<size_t>(shape.size(), 1)));
  if (copy == nullptr) throw std::bad_alloc();
  std::copy(shape.begin(), shape.end(), copy);
  result->shape = copy;
  result->ndim = static_cast<int32_t>(shape.size());
  result->data = *data;
  *data = nullptr;
}

}  // namespace

void GiveResults(Request* request, const CallerResults& place) {
  if (place.result != nullptr) {
    GiveTensor(&request->result.owned, request->result.shape, *request, place.result);
  }
  if (place.received_splits != nullptr) {
    std::copy(request->result.received_splits.begin(), request->result.received_splits.end(),
              place.received_splits);
  }
  if (place.last_rank != nullptr) *place.last_rank = static_cast<int32_t>(request->result.number);
}

size_t TensorsOf(const Pending& pending) {
  size_t count = 0;
  for (const auto& request : pending.requests)
    count += std::max<size_t>(request->buffers.parts.size(), 1);
  return count;
}

void GiveGroupResults(const Pending& pending, hvd_tensor_t* results) {
  for (const auto& request : pending.requests) {
    for (RequestPart& part : request->buffers.parts) {
      GiveTensor(&part.owned_result, part.result_shape, *request, &results[part.position]);
    }
  }
}

absl::Status WaitFor(const Pending& pending) {
  if (pending.staged != nullptr) return pending.staged->Wait();
  absl::Status status = AwaitDone(pending);
  for (const auto& request : pending.requests) {
    if (status.ok()) status = OrderCaller(*request);
  }
  // A call that was aborted on the GPU has ended there, too.
  if (status.ok() && pending.requests[0]->buffers.device.waits_on_host) {
    const std::shared_ptr<Engine> engine = pending.EngineOf(0).lock();
    if (engine != nullptr) status = engine->world().waiter().Check();
  }
  return status;
}

absl::Status AwaitDone(const Pending& pending) {
  absl::Status status;
  for (size_t i = 0; i < pending.requests.size(); ++i) {
    Request* const request = pending.requests[i].get();
    const std::shared_ptr<Engine> engine = pending.EngineOf(i).lock();
    // After a shutdown every request is done.
    const bool done = request->done.load(std::memory_order_acquire) || engine == nullptr;
    absl::Status ended = done ? request->result.status : engine->Wait(request);
    if (status.ok()) status = std::move(ended);
  }
  return status;
}

}  // namespace hvd::rt
