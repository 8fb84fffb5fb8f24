// SPDX-License-Identifier: Apache-2.0
// Compiled where CUDA's header is: what runtime/gpu/cuda_driver.h declares by hand is what the
// driver has.
#include <cuda.h>

#include <catch2/catch.hpp>
#include <string>

#include "runtime/gpu/cuda_driver.h"
#include "tests/runtime/gpu/same_abi.h"

namespace hvd::rt {
namespace {

#define HVD_TEXT_OF(name) #name
#define HVD_REAL_NAME(name) HVD_TEXT_OF(name)  // after the header's own renaming

#define HVD_SAME(mine, real, symbol)                                                     \
  static_assert(SameCall<decltype(CudaFunctions::mine), decltype(&real)>::value, #real); \
  CHECK(std::string(HVD_REAL_NAME(real)) == symbol)

TEST_CASE("the driver's functions are declared as its header has them") {
  HVD_SAME(init, cuInit, "cuInit");
  HVD_SAME(driver_version, cuDriverGetVersion, "cuDriverGetVersion");
  HVD_SAME(error_name, cuGetErrorName, "cuGetErrorName");
  HVD_SAME(error_string, cuGetErrorString, "cuGetErrorString");
  HVD_SAME(device_count, cuDeviceGetCount, "cuDeviceGetCount");
  HVD_SAME(device, cuDeviceGet, "cuDeviceGet");
  HVD_SAME(device_name, cuDeviceGetName, "cuDeviceGetName");
  HVD_SAME(device_uuid, cuDeviceGetUuid, "cuDeviceGetUuid_v2");
  HVD_SAME(retain_context, cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
  HVD_SAME(release_context, cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2");
  HVD_SAME(push_context, cuCtxPushCurrent, "cuCtxPushCurrent_v2");
  HVD_SAME(pop_context, cuCtxPopCurrent, "cuCtxPopCurrent_v2");
  HVD_SAME(priority_range, cuCtxGetStreamPriorityRange, "cuCtxGetStreamPriorityRange");
  HVD_SAME(allocate, cuMemAlloc, "cuMemAlloc_v2");
  HVD_SAME(free, cuMemFree, "cuMemFree_v2");
  HVD_SAME(allocate_pinned, cuMemHostAlloc, "cuMemHostAlloc");
  HVD_SAME(free_pinned, cuMemFreeHost, "cuMemFreeHost");
  HVD_SAME(pin, cuMemHostRegister, "cuMemHostRegister_v2");
  HVD_SAME(unpin, cuMemHostUnregister, "cuMemHostUnregister");
  HVD_SAME(pointer_attribute, cuPointerGetAttribute, "cuPointerGetAttribute");
}

TEST_CASE("copies, streams and events likewise") {
  HVD_SAME(copy_in, cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2");
  HVD_SAME(copy_out, cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2");
  HVD_SAME(copy_within, cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2");
  HVD_SAME(set_bytes, cuMemsetD8Async, "cuMemsetD8Async");
  HVD_SAME(create_stream, cuStreamCreateWithPriority, "cuStreamCreateWithPriority");
  HVD_SAME(destroy_stream, cuStreamDestroy, "cuStreamDestroy_v2");
  HVD_SAME(await_event, cuStreamWaitEvent, "cuStreamWaitEvent");
  HVD_SAME(query_stream, cuStreamQuery, "cuStreamQuery");
  HVD_SAME(capture_state, cuStreamIsCapturing, "cuStreamIsCapturing");
  HVD_SAME(launch_host, cuLaunchHostFunc, "cuLaunchHostFunc");
  HVD_SAME(create_event, cuEventCreate, "cuEventCreate");
  HVD_SAME(record_event, cuEventRecord, "cuEventRecord");
  HVD_SAME(query_event, cuEventQuery, "cuEventQuery");
  HVD_SAME(await_event_here, cuEventSynchronize, "cuEventSynchronize");
  HVD_SAME(destroy_event, cuEventDestroy, "cuEventDestroy_v2");
}

TEST_CASE("the driver's numbers are its header's") {
  STATIC_REQUIRE(sizeof(CudaUuid) == sizeof(CUuuid));
  STATIC_REQUIRE(sizeof(CudaAddress) == sizeof(CUdeviceptr));
  CHECK(int{kCudaSuccess} == int{CUDA_SUCCESS});
  CHECK(int{kCudaNoDevice} == int{CUDA_ERROR_NO_DEVICE});
  CHECK(int{kCudaNotReady} == int{CUDA_ERROR_NOT_READY});
  CHECK(kCudaStreamNonBlocking == unsigned{CU_STREAM_NON_BLOCKING});
  CHECK(kCudaEventDisableTiming == unsigned{CU_EVENT_DISABLE_TIMING});
  CHECK(kCudaHostPortable == unsigned{CU_MEMHOSTALLOC_PORTABLE});
  CHECK(kCudaHostPortable == unsigned{CU_MEMHOSTREGISTER_PORTABLE});
  CHECK(int{kCudaPointerContext} == int{CU_POINTER_ATTRIBUTE_CONTEXT});
  CHECK(int{kCudaPointerMemoryType} == int{CU_POINTER_ATTRIBUTE_MEMORY_TYPE});
  CHECK(int{kCudaPointerIsManaged} == int{CU_POINTER_ATTRIBUTE_IS_MANAGED});
  CHECK(int{kCudaPointerDevice} == int{CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL});
  CHECK(kCudaMemoryHost == unsigned{CU_MEMORYTYPE_HOST});
  CHECK(kCudaMemoryDevice == unsigned{CU_MEMORYTYPE_DEVICE});
  CHECK(int{kCudaNotCapturing} == int{CU_STREAM_CAPTURE_STATUS_NONE});
  CHECK(int{kCudaCapturing} == int{CU_STREAM_CAPTURE_STATUS_ACTIVE});
  CHECK(int{kCudaCaptureInvalid} == int{CU_STREAM_CAPTURE_STATUS_INVALIDATED});
}

}  // namespace
}  // namespace hvd::rt
