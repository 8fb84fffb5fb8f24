// SPDX-License-Identifier: Apache-2.0
// The collectives of the C ABI.
#include <cstddef>
#include <cstdlib>
#include <utility>

#include "runtime/api/calls.h"

namespace hvd::rt {
namespace {

Call Of(RequestKind kind, const hvd_tensor_t* input, const hvd_tensor_t* output) {
  Call call;
  call.kind = kind;
  call.input = input;
  call.output = output;
  return call;
}

Call PairOf(RequestKind kind, const hvd_tensor_t* tensor, int32_t peer, int64_t tag) {
  Call call = Of(kind, tensor, nullptr);
  call.peer = peer;
  call.tag = tag;
  return call;
}

GroupCall GroupOf(RequestKind kind, const hvd_tensor_t* inputs, const hvd_tensor_t* outputs,
                  int32_t count) {
  GroupCall call;
  call.kind = kind;
  call.inputs = inputs;
  call.outputs = outputs;
  call.count = count;
  return call;
}

// A blocking call whose result the library allocates must be told where to put it.
bool LacksPlace(const void* outputs, const void* results, const hvd_options_t* options) {
  const bool gives = options != nullptr &&
                     options->struct_size >= offsetof(hvd_options_t, ready_event) &&
                     options->result_fn != nullptr;
  return outputs == nullptr && results == nullptr && !gives;
}
hvd_status_t NeedPlace(const char* operation) {
  return Fail(HVD_ERR_INVALID,
              std::string(operation) + " needs an output or a place for its result");
}

}  // namespace
}  // namespace hvd::rt

using hvd::rt::RequestKind;

extern "C" {

hvd_status_t hvd_allreduce(const hvd_tensor_t* input, const hvd_tensor_t* output,
                           const hvd_options_t* options) {
  return hvd::rt::CallBlocking(hvd::rt::Of(RequestKind::kAllreduce, input, output), options);
}
hvd_status_t hvd_allreduce_async(const hvd_tensor_t* input, const hvd_tensor_t* output,
                                 const hvd_options_t* options, hvd_handle_t* handle) {
  return hvd::rt::CallAsync(hvd::rt::Of(RequestKind::kAllreduce, input, output), options, handle);
}
hvd_status_t hvd_allreduce_for(const hvd_tensor_t* input, const hvd_tensor_t* output,
                               const hvd_options_t* options, int64_t microseconds,
                               hvd_handle_t* handle) {
  return hvd::rt::CallBlockingFor(hvd::rt::Of(RequestKind::kAllreduce, input, output), options,
                                  microseconds, handle);
}

hvd_status_t hvd_reducescatter(const hvd_tensor_t* input, const hvd_tensor_t* output,
                               const hvd_options_t* options, hvd_tensor_t* result) {
  if (hvd::rt::LacksPlace(output, result, options)) return hvd::rt::NeedPlace("a reduce-scatter");
  return hvd::rt::CallBlocking(hvd::rt::Of(RequestKind::kReduceScatter, input, output), options,
                               {result, nullptr});
}
hvd_status_t hvd_reducescatter_async(const hvd_tensor_t* input, const hvd_tensor_t* output,
                                     const hvd_options_t* options, hvd_handle_t* handle) {
  return hvd::rt::CallAsync(hvd::rt::Of(RequestKind::kReduceScatter, input, output), options,
                            handle);
}

hvd_status_t hvd_allgather(const hvd_tensor_t* input, const hvd_tensor_t* output,
                           const hvd_options_t* options, hvd_tensor_t* result) {
  if (hvd::rt::LacksPlace(output, result, options)) return hvd::rt::NeedPlace("an allgather");
  return hvd::rt::CallBlocking(hvd::rt::Of(RequestKind::kAllgather, input, output), options,
                               {result, nullptr});
}
hvd_status_t hvd_allgather_async(const hvd_tensor_t* input, const hvd_tensor_t* output,
                                 const hvd_options_t* options, hvd_handle_t* handle) {
  return hvd::rt::CallAsync(hvd::rt::Of(RequestKind::kAllgather, input, output), options, handle);
}

hvd_status_t hvd_alltoall(const hvd_tensor_t* input, const int64_t* splits, int32_t nsplits,
                          const hvd_tensor_t* output, const hvd_options_t* options,
                          hvd_tensor_t* result, int64_t* received_splits) {
  if (hvd::rt::LacksPlace(output, result, options)) return hvd::rt::NeedPlace("an alltoall");
  hvd::rt::Call call = hvd::rt::Of(RequestKind::kAlltoall, input, output);
  call.splits = splits;
  call.split_count = nsplits;
  return hvd::rt::CallBlocking(hvd::rt::Call(call), options, {result, received_splits});
}
hvd_status_t hvd_alltoall_async(const hvd_tensor_t* input, const int64_t* splits, int32_t nsplits,
                                const hvd_tensor_t* output, const hvd_options_t* options,
                                hvd_handle_t* handle) {
  hvd::rt::Call call = hvd::rt::Of(RequestKind::kAlltoall, input, output);
  call.splits = splits;
  call.split_count = nsplits;
  return hvd::rt::CallAsync(call, options, handle);
}

hvd_status_t hvd_broadcast(const hvd_tensor_t* input, const hvd_tensor_t* output,
                           const hvd_options_t* options) {
  return hvd::rt::CallBlocking(hvd::rt::Of(RequestKind::kBroadcast, input, output), options);
}
hvd_status_t hvd_broadcast_async(const hvd_tensor_t* input, const hvd_tensor_t* output,
                                 const hvd_options_t* options, hvd_handle_t* handle) {
  return hvd::rt::CallAsync(hvd::rt::Of(RequestKind::kBroadcast, input, output), options, handle);
}

hvd_status_t hvd_send(const hvd_tensor_t* tensor, int32_t destination, int64_t tag,
                      const hvd_options_t* options) {
  return hvd::rt::CallBlocking(hvd::rt::PairOf(RequestKind::kSend, tensor, destination, tag),
                               options);
}
hvd_status_t hvd_send_async(const hvd_tensor_t* tensor, int32_t destination, int64_t tag,
                            const hvd_options_t* options, hvd_handle_t* handle) {
  return hvd::rt::CallAsync(hvd::rt::PairOf(RequestKind::kSend, tensor, destination, tag), options,
                            handle);
}
hvd_status_t hvd_recv(const hvd_tensor_t* tensor, int32_t source, int64_t tag,
                      const hvd_options_t* options) {
  return hvd::rt::CallBlocking(hvd::rt::PairOf(RequestKind::kReceive, tensor, source, tag),
                               options);
}
hvd_status_t hvd_recv_async(const hvd_tensor_t* tensor, int32_t source, int64_t tag,
                            const hvd_options_t* options, hvd_handle_t* handle) {
  return hvd::rt::CallAsync(hvd::rt::PairOf(RequestKind::kReceive, tensor, source, tag), options,
                            handle);
}

hvd_status_t hvd_grouped_allreduce(const hvd_tensor_t* inputs, const hvd_tensor_t* outputs,
                                   int32_t count, const hvd_options_t* options) {
  return hvd::rt::CallGroupBlocking(
      hvd::rt::GroupOf(RequestKind::kAllreduce, inputs, outputs, count), options, nullptr);
}
hvd_status_t hvd_grouped_allreduce_async(const hvd_tensor_t* inputs, const hvd_tensor_t* outputs,
                                         int32_t count, const hvd_options_t* options,
                                         hvd_handle_t* handle) {
  return hvd::rt::CallGroupAsync(hvd::rt::GroupOf(RequestKind::kAllreduce, inputs, outputs, count),
                                 options, handle);
}

hvd_status_t hvd_grouped_allgather(const hvd_tensor_t* inputs, const hvd_tensor_t* outputs,
                                   int32_t count, const hvd_options_t* options,
                                   hvd_tensor_t* results) {
  if (hvd::rt::LacksPlace(outputs, results, options))
    return hvd::rt::NeedPlace("a grouped allgather");
  return hvd::rt::CallGroupBlocking(
      hvd::rt::GroupOf(RequestKind::kAllgather, inputs, outputs, count), options, results);
}
hvd_status_t hvd_grouped_allgather_async(const hvd_tensor_t* inputs, const hvd_tensor_t* outputs,
                                         int32_t count, const hvd_options_t* options,
                                         hvd_handle_t* handle) {
  return hvd::rt::CallGroupAsync(hvd::rt::GroupOf(RequestKind::kAllgather, inputs, outputs, count),
                                 options, handle);
}

hvd_status_t hvd_grouped_reducescatter(const hvd_tensor_t* inputs, const hvd_tensor_t* outputs,
                                       int32_t count, const hvd_options_t* options,
                                       hvd_tensor_t* results) {
  if (hvd::rt::LacksPlace(outputs, results, options))
    return hvd::rt::NeedPlace("a grouped reduce-scatter");
  return hvd::rt::CallGroupBlocking(
      hvd::rt::GroupOf(RequestKind::kReduceScatter, inputs, outputs, count), options, results);
}
hvd_status_t hvd_grouped_reducescatter_async(const hvd_tensor_t* inputs,
                                             const hvd_tensor_t* outputs, int32_t count,
                                             const hvd_options_t* options, hvd_handle_t* handle) {
  return hvd::rt::CallGroupAsync(
      hvd::rt::GroupOf(RequestKind::kReduceScatter, inputs, outputs, count), options, handle);
}

hvd_status_t hvd_barrier(const hvd_options_t* options) {
  return hvd::rt::CallBlocking(hvd::rt::Of(RequestKind::kBarrier, nullptr, nullptr), options);
}

hvd_status_t hvd_barrier_async(const hvd_options_t* options, hvd_handle_t* handle) {
  return hvd::rt::CallAsync(hvd::rt::Of(RequestKind::kBarrier, nullptr, nullptr), options, handle);
}

hvd_status_t hvd_poll(hvd_handle_t handle, int32_t* done) {
  return hvd::rt::PollHandle(handle, done);
}

hvd_status_t hvd_wait_for(hvd_handle_t handle, int64_t microseconds, int32_t* done) {
  return hvd::rt::WaitHandleFor(handle, microseconds, done);
}

hvd_status_t hvd_release(hvd_handle_t handle) { return hvd::rt::ReleaseHandle(handle); }
hvd_status_t hvd_wait(hvd_handle_t handle) {
  return hvd::rt::WaitHandle(handle, hvd::rt::Wait::kForEnd);
}
hvd_status_t hvd_wait_result(hvd_handle_t handle, hvd_tensor_t* result) {
  if (result == nullptr) return hvd::rt::Fail(HVD_ERR_INVALID, "result is NULL");
  return hvd::rt::WaitHandle(handle, hvd::rt::Wait::kForResult, {result, nullptr});
}
hvd_status_t hvd_wait_on(hvd_handle_t handle, void* stream) {
  return hvd::rt::WaitHandleOn(handle, stream);
}
hvd_status_t hvd_check(void) {
  return hvd::rt::Guarded([] { return hvd::rt::CheckEpochAndGpus(); });
}
hvd_status_t hvd_wait_alltoall(hvd_handle_t handle, hvd_tensor_t* result,
                               int64_t* received_splits) {
  return hvd::rt::WaitHandle(handle, hvd::rt::Wait::kForAlltoall, {result, received_splits});
}
hvd_status_t hvd_wait_join(hvd_handle_t handle, int32_t* last_rank) {
  return hvd::rt::WaitHandle(handle, hvd::rt::Wait::kForJoin, {nullptr, nullptr, last_rank});
}
hvd_status_t hvd_wait_results(hvd_handle_t handle, hvd_tensor_t* results, int32_t count) {
  return hvd::rt::WaitGroupHandle(handle, results, count);
}

void hvd_free_result(hvd_tensor_t* result) {
  if (result == nullptr) return;
  if (result->device_type == HVD_CUDA) {
    hvd_free(result->data);
  } else {
    free(result->data);
  }
  free(const_cast<int64_t*>(result->shape));
  result->data = nullptr;
  result->shape = nullptr;
}

}  // extern "C"
