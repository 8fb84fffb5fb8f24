// The C ABI: checks and the engine.
#include <algorithm>
#include <cstdlib>
#include <new>

#include "hvd/hvd.h"
#include "runtime/api/check.h"
#include "runtime/api/errors.h"
#include "runtime/api/process.h"

namespace hvd {
namespace {

hvd_status_t CallBlocking(const Call& call, Request* request) {
  const std::shared_ptr<Engine> engine = Process::Get().engine();
  if (engine == nullptr) return NotInitialized();
  const absl::Status checked = CheckCall(call, engine->world().topology().size(), request);
  if (!checked.ok()) return Return(checked);
  return ReturnExecuted(engine->Run(request));
}

hvd_status_t CallBlocking(const Call& call) {
  return Guarded([&] {
    Request request;
    return CallBlocking(call, &request);
  });
}

hvd_status_t CallAsync(const Call& call, hvd_handle_t* handle) {
  return Guarded([&]() -> hvd_status_t {
    if (handle == nullptr) return Fail(HVD_ERR_INVALID, "handle is NULL");
    const std::shared_ptr<Engine> engine = Process::Get().engine();
    if (engine == nullptr) return NotInitialized();
    auto request = std::make_shared<Request>();
    absl::Status status = CheckCall(call, engine->world().topology().size(), request.get());
    if (!status.ok()) return Return(status);
    // The handle first: once submitted, the request must not be lost for want of memory.
    *handle = Process::Get().handles().Add(request);
    status = engine->Submit(request.get());
    if (status.ok()) return HVD_OK;
    Process::Get().handles().Remove(*handle);
    return Return(status);
  });
}

void TakeResult(Request* request, hvd_tensor_t* result) {
  *result = HVD_TENSOR_INIT;
  result->dtype = static_cast<int32_t>(request->signature.dtype);
  if (request->owned_result == nullptr) return;
  auto* shape = static_cast<int64_t*>(malloc(sizeof(int64_t) * request->result_shape.size()));
  if (shape == nullptr) throw std::bad_alloc();
  std::copy(request->result_shape.begin(), request->result_shape.end(), shape);
  result->shape = shape;
  result->ndim = static_cast<int32_t>(request->result_shape.size());
  result->data = request->owned_result;
  request->owned_result = nullptr;
}

hvd_status_t WaitHandle(hvd_handle_t handle, hvd_tensor_t* result) {
  return Guarded([&]() -> hvd_status_t {
    const std::shared_ptr<Request> request = Process::Get().handles().Find(handle);
    if (request == nullptr) {
      return Fail(HVD_ERR_INVALID, "handle " + std::to_string(handle) +
                                       " is unknown; it may have been waited for already");
    }
    const std::shared_ptr<Engine> engine = Process::Get().engine();
    // After a shutdown every request is done.
    const absl::Status status = engine != nullptr && !request->done.load(std::memory_order_acquire)
                                    ? engine->Wait(request.get())
                                    : request->status;
    Process::Get().handles().Remove(handle);
    const hvd_status_t code = ReturnExecuted(status);
    if (code == HVD_OK && result != nullptr) TakeResult(request.get(), result);
    return code;
  });
}

template <class Get>
int32_t Ask(Get get) {
  const std::shared_ptr<Engine> engine = Process::Get().engine();
  return engine == nullptr ? -1 : static_cast<int32_t>(get(engine->world()));
}

}  // namespace
}  // namespace hvd

using hvd::Call;
using hvd::RequestKind;

extern "C" {

hvd_status_t hvd_init(const hvd_init_options_t* options) {
  return hvd::Guarded([&]() -> hvd_status_t {
    if (options != nullptr && options->struct_size != sizeof(*options)) {
      return hvd::Fail(HVD_ERR_INVALID, "options.struct_size is not what this libhvd knows");
    }
    const absl::Status status = hvd::Process::Get().Init();
    if (status.ok() || absl::IsAborted(status)) return hvd::Return(status);
    return hvd::Fail(HVD_ERR_LAUNCH, std::string(status.message()));
  });
}

hvd_status_t hvd_shutdown(void) {
  return hvd::Guarded([] { return hvd::Return(hvd::Process::Get().Shutdown()); });
}

int32_t hvd_is_initialized(void) { return hvd::Process::Get().engine() != nullptr ? 1 : 0; }

int32_t hvd_rank(void) {
  return hvd::Ask([](const hvd::EpochWorld& world) { return world.rank(); });
}
int32_t hvd_size(void) {
  return hvd::Ask([](const hvd::EpochWorld& world) { return world.topology().size(); });
}
int32_t hvd_local_rank(void) {
  return hvd::Ask([](const hvd::EpochWorld& world) { return world.place().local_rank; });
}
int32_t hvd_local_size(void) {
  return hvd::Ask([](const hvd::EpochWorld& world) { return world.place().local_size; });
}
int32_t hvd_cross_rank(void) {
  return hvd::Ask([](const hvd::EpochWorld& world) { return world.place().cross_rank; });
}
int32_t hvd_cross_size(void) {
  return hvd::Ask([](const hvd::EpochWorld& world) { return world.place().cross_size; });
}
int32_t hvd_is_homogeneous(void) {
  return hvd::Ask(
      [](const hvd::EpochWorld& world) { return world.topology().is_homogeneous() ? 1 : 0; });
}

hvd_status_t hvd_allreduce(const hvd_tensor_t* input, const hvd_tensor_t* output,
                           const hvd_options_t* options) {
  return hvd::CallBlocking(Call{RequestKind::kAllreduce, input, output, options});
}
hvd_status_t hvd_allreduce_async(const hvd_tensor_t* input, const hvd_tensor_t* output,
                                 const hvd_options_t* options, hvd_handle_t* handle) {
  return hvd::CallAsync(Call{RequestKind::kAllreduce, input, output, options}, handle);
}

hvd_status_t hvd_allgather(const hvd_tensor_t* input, const hvd_tensor_t* output,
                           const hvd_options_t* options, hvd_tensor_t* result) {
  return hvd::Guarded([&]() -> hvd_status_t {
    if (output == nullptr && result == nullptr) {
      return hvd::Fail(HVD_ERR_INVALID, "an allgather needs an output or a place for its result");
    }
    hvd::Request request;
    const hvd_status_t code =
        hvd::CallBlocking(Call{RequestKind::kAllgather, input, output, options}, &request);
    if (code == HVD_OK && result != nullptr) hvd::TakeResult(&request, result);
    return code;
  });
}
hvd_status_t hvd_allgather_async(const hvd_tensor_t* input, const hvd_tensor_t* output,
                                 const hvd_options_t* options, hvd_handle_t* handle) {
  return hvd::CallAsync(Call{RequestKind::kAllgather, input, output, options}, handle);
}

hvd_status_t hvd_broadcast(const hvd_tensor_t* input, const hvd_tensor_t* output,
                           const hvd_options_t* options) {
  return hvd::CallBlocking(Call{RequestKind::kBroadcast, input, output, options});
}
hvd_status_t hvd_broadcast_async(const hvd_tensor_t* input, const hvd_tensor_t* output,
                                 const hvd_options_t* options, hvd_handle_t* handle) {
  return hvd::CallAsync(Call{RequestKind::kBroadcast, input, output, options}, handle);
}

hvd_status_t hvd_barrier(const hvd_options_t* options) {
  return hvd::Guarded([&]() -> hvd_status_t {
    if (const auto engine = hvd::Process::Get().engine()) engine->Drain();
    return hvd::CallBlocking(Call{RequestKind::kBarrier, nullptr, nullptr, options});
  });
}

hvd_status_t hvd_poll(hvd_handle_t handle, int32_t* done) {
  return hvd::Guarded([&]() -> hvd_status_t {
    const auto request = hvd::Process::Get().handles().Find(handle);
    if (request == nullptr || done == nullptr) {
      return hvd::Fail(HVD_ERR_INVALID, done == nullptr ? "done is NULL" : "unknown handle");
    }
    *done = request->done.load(std::memory_order_acquire) ? 1 : 0;
    return HVD_OK;
  });
}
hvd_status_t hvd_wait(hvd_handle_t handle) { return hvd::WaitHandle(handle, nullptr); }
hvd_status_t hvd_wait_result(hvd_handle_t handle, hvd_tensor_t* result) {
  if (result == nullptr) return hvd::Fail(HVD_ERR_INVALID, "result is NULL");
  return hvd::WaitHandle(handle, result);
}
void hvd_free_result(hvd_tensor_t* result) {
  if (result == nullptr) return;
  free(result->data);
  free(const_cast<int64_t*>(result->shape));
  result->data = nullptr;
  result->shape = nullptr;
}

}  // extern "C"
