// SPDX-License-Identifier: Apache-2.0
#include "runtime/gpu/cuda_driver.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace hvd::rt {

absl::StatusOr<CudaDriver> CudaDriver::Load(const std::string& name) {
  auto library = SharedLibrary::Open(name);
  if (!library.ok()) return library.status();
  CudaDriver driver;
  driver.library_ = *std::move(library);
  if (absl::Status found = driver.FindFunctions(); !found.ok()) return found;
  if (absl::Status begun = driver.Begin(); !begun.ok()) return begun;
  return driver;
}

// The names carry the version of the ABI: a driver keeps the old ones for ever.
absl::Status CudaDriver::FindFunctions() {
  SymbolLoader load(library_);
  load.Must("cuInit", &calls_.init);
  load.Must("cuDriverGetVersion", &calls_.driver_version);
  load.Must("cuGetErrorName", &calls_.error_name);
  load.Must("cuGetErrorString", &calls_.error_string);
  load.Must("cuDeviceGetCount", &calls_.device_count);
  load.Must("cuDeviceGet", &calls_.device);
  load.Must("cuDeviceGetName", &calls_.device_name);
  load.Must("cuDeviceGetUuid_v2", &calls_.device_uuid);
  load.Must("cuDevicePrimaryCtxRetain", &calls_.retain_context);
  load.Must("cuDevicePrimaryCtxRelease_v2", &calls_.release_context);
  load.Must("cuCtxPushCurrent_v2", &calls_.push_context);
  load.Must("cuCtxPopCurrent_v2", &calls_.pop_context);
  load.Must("cuCtxGetStreamPriorityRange", &calls_.priority_range);
  load.Must("cuMemAlloc_v2", &calls_.allocate);
  load.Must("cuMemFree_v2", &calls_.free);
  load.Must("cuMemHostAlloc", &calls_.allocate_pinned);
  load.Must("cuMemFreeHost", &calls_.free_pinned);
  load.Must("cuMemHostRegister_v2", &calls_.pin);
  load.Must("cuMemHostUnregister", &calls_.unpin);
  load.Must("cuPointerGetAttribute", &calls_.pointer_attribute);
  load.Must("cuMemcpyHtoDAsync_v2", &calls_.copy_in);
  load.Must("cuMemcpyDtoHAsync_v2", &calls_.copy_out);
  load.Must("cuMemcpyDtoDAsync_v2", &calls_.copy_within);
  load.Must("cuMemsetD8Async", &calls_.set_bytes);
  load.Must("cuStreamCreateWithPriority", &calls_.create_stream);
  load.Must("cuStreamDestroy_v2", &calls_.destroy_stream);
  load.Must("cuStreamWaitEvent", &calls_.await_event);
  load.Must("cuStreamQuery", &calls_.query_stream);
  load.Must("cuStreamIsCapturing", &calls_.capture_state);
  load.Must("cuLaunchHostFunc", &calls_.launch_host);
  load.Must("cuEventCreate", &calls_.create_event);
  load.Must("cuEventRecord", &calls_.record_event);
  load.Must("cuEventQuery", &calls_.query_event);
  load.Must("cuEventSynchronize", &calls_.await_event_here);
  load.Must("cuEventDestroy_v2", &calls_.destroy_event);
  return load.status();
}

absl::Status CudaDriver::Begin() {
  absl::Status status = Check(calls_.init(0), "cuInit");
  if (status.ok()) status = Check(calls_.driver_version(&version_), "cuDriverGetVersion");
  if (status.ok()) status = Check(calls_.device_count(&devices_), "cuDeviceGetCount");
  if (status.ok() && devices_ == 0) status = absl::UnavailableError("there is no GPU");
  return status;
}

absl::Status CudaDriver::Check(CudaResult result, const char* what) const {
  if (result == kCudaSuccess) return absl::OkStatus();
  const char* name = nullptr;
  const char* text = nullptr;
  if (calls_.error_name(result, &name) != kCudaSuccess || name == nullptr) name = "unknown error";
  if (calls_.error_string(result, &text) != kCudaSuccess || text == nullptr) text = "";
  return absl::UnavailableError(absl::StrCat(what, ": ", text, *text != '\0' ? " " : "", "(", name,
                                             ", ", static_cast<int>(result), ")"));
}

std::string CudaVersionText(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

}  // namespace hvd::rt
