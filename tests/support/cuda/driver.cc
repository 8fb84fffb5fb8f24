// SPDX-License-Identifier: Apache-2.0
// libcuda.so.1 as the tests build it: the driver's names over the stand-in (stand_in.h). Its
// functions have the types that runtime/gpu/cuda_driver.h declares, which a test compares with the
// real header.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "tests/support/cuda/enqueue.h"
#include "tests/support/cuda/stand_in.h"

namespace hvd::rt {
namespace {

constexpr int kVersion = 13000;
constexpr auto kInvalidValue = static_cast<CudaResult>(1);
constexpr auto kInvalidDevice = static_cast<CudaResult>(101);
constexpr auto kInvalidContext = static_cast<CudaResult>(201);
constexpr auto kOnOrder = static_cast<CudaResult>(999);  // what HVD_STAND_IN has asked to fail

// A device's primary context, by its number and one, so that none is null.
CudaContext ContextOf(CudaDevice device) {
  return reinterpret_cast<CudaContext>(static_cast<uintptr_t>(device) + 1);
}

constexpr const char* kPageableCopy = "a copy of memory that is not pinned";

thread_local std::vector<CudaContext> contexts;

bool IsDevice(CudaDevice device) {
  return device >= 0 && device < StandIn::Get().settings().devices;
}

// Begins every call that needs a context.
CudaResult Begin(const char* call) {
  if (StandIn::Get().Fails(call)) return kOnOrder;
  if (!contexts.empty()) return kCudaSuccess;
  StandIn::Get().Find(std::string(call) + " is called without a context");
  return kInvalidContext;
}

CudaDevice CurrentDevice() {
  return static_cast<CudaDevice>(reinterpret_cast<uintptr_t>(contexts.back()) - 1);
}

uint64_t NumberOf(const void* handle) { return reinterpret_cast<uint64_t>(handle); }

CudaResult Copy(const char* call, CudaStream stream, const StandIn::Range& to,
                const StandIn::Range& from) {
  const CudaResult begun = Begin(call);
  if (begun != kCudaSuccess) return begun;
  return StandIn::Get().Enqueue(NumberOf(stream), {to, from}, call,
                                [bytes = to.bytes](const std::vector<char*>& places) {
                                  memcpy(places[0], places[1], bytes);
                                });
}

}  // namespace
}  // namespace hvd::rt

using namespace hvd::rt;  // NOLINT(google-build-using-namespace): all that follows is the driver's

extern "C" {

int hvd_stand_in_enqueue(void* stream, const hvd_stand_in_range* ranges, size_t count,
                         const char* what, void (*work)(char* const* places, void* data),
                         void* data) {
  std::vector<StandIn::Range> all;
  for (size_t i = 0; i < count; ++i) {
    all.push_back({ranges[i].address, ranges[i].bytes, ranges[i].writes, true});
  }
  return StandIn::Get().Enqueue(
      NumberOf(stream), all, what,
      [work, data](const std::vector<char*>& places) { work(places.data(), data); });
}
bool hvd_stand_in_fails(const char* call) { return StandIn::Get().Fails(call); }
bool hvd_stand_in_aborts_together() { return StandIn::Get().settings().aborts_together; }
void hvd_stand_in_find(const char* finding) { StandIn::Get().Find(finding); }
uint64_t hvd_stand_in_calls(const char* call) { return StandIn::Get().calls(call); }
uint64_t hvd_stand_in_findings() { return StandIn::Get().findings().size(); }
void hvd_stand_in_finding(uint64_t index, char* text, size_t bytes) {
  snprintf(text, bytes, "%s", StandIn::Get().findings().at(index).c_str());
}

CudaResult cuInit(unsigned) { return StandIn::Get().Fails("cuInit") ? kOnOrder : kCudaSuccess; }
CudaResult cuDriverGetVersion(int* version) {
  *version = kVersion;
  return kCudaSuccess;
}
CudaResult cuGetErrorName(CudaResult result, const char** name) {
  *name = result == kOnOrder ? "CUDA_ERROR_UNKNOWN" : "CUDA_ERROR_OF_STAND_IN";
  return kCudaSuccess;
}
CudaResult cuGetErrorString(CudaResult result, const char** text) {
  *text = result == kOnOrder ? "fails on order" : "an error of the stand-in";
  return kCudaSuccess;
}

CudaResult cuDeviceGetCount(int* count) {
  *count = StandIn::Get().settings().devices;
  return kCudaSuccess;
}
CudaResult cuDeviceGet(CudaDevice* device, int index) {
  *device = index;
  return IsDevice(index) ? kCudaSuccess : kInvalidDevice;
}
CudaResult cuDeviceGetName(char* name, int bytes, CudaDevice device) {
  snprintf(name, bytes, "stand-in %d", device);
  return IsDevice(device) ? kCudaSuccess : kInvalidDevice;
}
CudaResult cuDeviceGetUuid_v2(CudaUuid* uuid, CudaDevice device) {
  memset(uuid, device + 1, sizeof(*uuid));
  const pid_t process = getpid();
  if (StandIn::Get().settings().own_gpu) memcpy(uuid, &process, sizeof(process));
  return IsDevice(device) ? kCudaSuccess : kInvalidDevice;
}

CudaResult cuDevicePrimaryCtxRetain(CudaContext* context, CudaDevice device) {
  *context = ContextOf(device);
  return IsDevice(device) ? kCudaSuccess : kInvalidDevice;
}
CudaResult cuDevicePrimaryCtxRelease_v2(CudaDevice device) {
  return IsDevice(device) ? kCudaSuccess : kInvalidDevice;
}
CudaResult cuCtxPushCurrent_v2(CudaContext context) {
  contexts.push_back(context);
  return kCudaSuccess;
}
CudaResult cuCtxPopCurrent_v2(CudaContext* context) {
  if (contexts.empty()) return kInvalidContext;
  *context = contexts.back();
  contexts.pop_back();
  return kCudaSuccess;
}
CudaResult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return Begin("cuCtxGetStreamPriorityRange");
}

CudaResult cuCtxSynchronize() {
  const CudaResult begun = Begin("cuCtxSynchronize");
  return begun == kCudaSuccess ? StandIn::Get().AwaitAll() : begun;
}

CudaResult cuMemAlloc_v2(CudaAddress* address, size_t bytes) {
  const CudaResult begun = Begin("cuMemAlloc_v2");
  if (begun != kCudaSuccess) return begun;
  uint64_t place = 0;
  const CudaResult made = StandIn::Get().Allocate(&place, bytes, CurrentDevice());
  *address = place;
  return made;
}
CudaResult cuMemFree_v2(CudaAddress address) {
  const CudaResult begun = Begin("cuMemFree_v2");
  return begun == kCudaSuccess ? StandIn::Get().Free(address) : begun;
}
CudaResult cuMemHostAlloc(void** address, size_t bytes, unsigned) {
  const CudaResult begun = Begin("cuMemHostAlloc");
  return begun == kCudaSuccess ? StandIn::Get().AllocatePinned(address, bytes) : begun;
}
CudaResult cuMemFreeHost(void* address) {
  const CudaResult begun = Begin("cuMemFreeHost");
  return begun == kCudaSuccess ? StandIn::Get().FreePinned(address) : begun;
}
CudaResult cuMemHostRegister_v2(void* address, size_t bytes, unsigned) {
  const CudaResult begun = Begin("cuMemHostRegister_v2");
  return begun == kCudaSuccess ? StandIn::Get().Pin(address, bytes) : begun;
}
CudaResult cuMemHostUnregister(void* address) {
  const CudaResult begun = Begin("cuMemHostUnregister");
  return begun == kCudaSuccess ? StandIn::Get().Unpin(address) : begun;
}

// As the driver: memory that it does not know is an error, not pageable memory.
CudaResult cuPointerGetAttribute(void* value, CudaPointerAttribute attribute, CudaAddress address) {
  const MemoryKind kind = StandIn::Get().KindOf(address);
  if (kind == MemoryKind::kPageable) return kInvalidValue;
  switch (attribute) {
    case kCudaPointerMemoryType:
      *static_cast<unsigned*>(value) =
          kind == MemoryKind::kDevice ? kCudaMemoryDevice : kCudaMemoryHost;
      return kCudaSuccess;
    case kCudaPointerDevice:
      *static_cast<int*>(value) = std::max(0, StandIn::Get().DeviceOf(address));
      return kCudaSuccess;
    case kCudaPointerIsManaged:
      *static_cast<unsigned*>(value) = 0;
      return kCudaSuccess;
    case kCudaPointerContext:
      *static_cast<CudaContext*>(value) = ContextOf(std::max(0, StandIn::Get().DeviceOf(address)));
      return kCudaSuccess;
  }
  return kInvalidValue;
}

// From memory that is not pinned the driver takes a copy before it returns; to such memory it comes
// back when the bytes are there. Both cost the host time, so they are counted.
CudaResult cuMemcpyHtoDAsync_v2(CudaAddress to, const void* from, size_t bytes, CudaStream stream) {
  if (StandIn::Get().KindOf(NumberOf(from)) != MemoryKind::kPageable) {
    return Copy("cuMemcpyHtoDAsync_v2", stream, {to, bytes, true, true},
                {NumberOf(from), bytes, false, false});
  }
  const CudaResult begun = Begin("cuMemcpyHtoDAsync_v2");
  if (begun != kCudaSuccess) return begun;
  StandIn::Get().Fails(kPageableCopy);
  const auto* first = static_cast<const char*>(from);
  return StandIn::Get().Enqueue(
      NumberOf(stream), {{to, bytes, true, true}}, "cuMemcpyHtoDAsync_v2",
      [copy = std::vector<char>(first, first + bytes)](const std::vector<char*>& places) {
        memcpy(places[0], copy.data(), copy.size());
      });
}
CudaResult cuMemcpyDtoHAsync_v2(void* to, CudaAddress from, size_t bytes, CudaStream stream) {
  const bool pinned = StandIn::Get().KindOf(NumberOf(to)) == MemoryKind::kPinned;
  const CudaResult copied = Copy("cuMemcpyDtoHAsync_v2", stream, {NumberOf(to), bytes, true, false},
                                 {from, bytes, false, true});
  if (pinned || copied != kCudaSuccess) return copied;
  StandIn::Get().Fails(kPageableCopy);
  const uint64_t event = StandIn::Get().CreateEvent();
  StandIn::Get().Record(event, NumberOf(stream));
  StandIn::Get().AwaitHere(event);
  return StandIn::Get().DestroyEvent(event);
}
CudaResult cuMemcpyDtoDAsync_v2(CudaAddress to, CudaAddress from, size_t bytes, CudaStream stream) {
  return Copy("cuMemcpyDtoDAsync_v2", stream, {to, bytes, true, true}, {from, bytes, false, true});
}
CudaResult cuMemsetD8Async(CudaAddress to, unsigned char value, size_t bytes, CudaStream stream) {
  const CudaResult begun = Begin("cuMemsetD8Async");
  if (begun != kCudaSuccess) return begun;
  return StandIn::Get().Enqueue(
      NumberOf(stream), {{to, bytes, true, true}}, "cuMemsetD8Async",
      [value, bytes](const std::vector<char*>& places) { memset(places[0], value, bytes); });
}

CudaResult cuStreamCreateWithPriority(CudaStream* stream, unsigned, int) {
  const CudaResult begun = Begin("cuStreamCreateWithPriority");
  if (begun != kCudaSuccess) return begun;
  *stream = reinterpret_cast<CudaStream>(StandIn::Get().CreateStream());
  return kCudaSuccess;
}
CudaResult cuStreamDestroy_v2(CudaStream stream) {
  const CudaResult begun = Begin("cuStreamDestroy_v2");
  return begun == kCudaSuccess ? StandIn::Get().DestroyStream(NumberOf(stream)) : begun;
}
CudaResult cuStreamWaitEvent(CudaStream stream, CudaEvent event, unsigned) {
  const CudaResult begun = Begin("cuStreamWaitEvent");
  return begun == kCudaSuccess ? StandIn::Get().Await(NumberOf(stream), NumberOf(event)) : begun;
}
CudaResult cuStreamQuery(CudaStream stream) {
  const CudaResult begun = Begin("cuStreamQuery");
  return begun == kCudaSuccess ? StandIn::Get().QueryStream(NumberOf(stream)) : begun;
}
CudaResult cuStreamIsCapturing(CudaStream, CudaCapture* state) {
  *state = kCudaNotCapturing;
  return Begin("cuStreamIsCapturing");
}

// As the driver: the function may not call the driver.
CudaResult cuLaunchHostFunc(CudaStream stream, void (*call)(void* argument), void* argument) {
  const CudaResult begun = Begin("cuLaunchHostFunc");
  if (begun != kCudaSuccess) return begun;
  return StandIn::Get().LaunchHost(NumberOf(stream), call, argument);
}

CudaResult cuEventCreate(CudaEvent* event, unsigned) {
  const CudaResult begun = Begin("cuEventCreate");
  if (begun != kCudaSuccess) return begun;
  *event = reinterpret_cast<CudaEvent>(StandIn::Get().CreateEvent());
  return kCudaSuccess;
}
CudaResult cuEventRecord(CudaEvent event, CudaStream stream) {
  const CudaResult begun = Begin("cuEventRecord");
  return begun == kCudaSuccess ? StandIn::Get().Record(NumberOf(event), NumberOf(stream)) : begun;
}
CudaResult cuEventQuery(CudaEvent event) {
  const CudaResult begun = Begin("cuEventQuery");
  return begun == kCudaSuccess ? StandIn::Get().QueryEvent(NumberOf(event)) : begun;
}
CudaResult cuEventSynchronize(CudaEvent event) {
  const CudaResult begun = Begin("cuEventSynchronize");
  return begun == kCudaSuccess ? StandIn::Get().AwaitHere(NumberOf(event)) : begun;
}
CudaResult cuEventDestroy_v2(CudaEvent event) {
  const CudaResult begun = Begin("cuEventDestroy_v2");
  return begun == kCudaSuccess ? StandIn::Get().DestroyEvent(NumberOf(event)) : begun;
}

}  // extern "C"
