// SPDX-License-Identifier: Apache-2.0
// NVIDIA's driver library, libcuda: the part of its stable ABI that is used here, declared by hand,
// so that no header of CUDA's is needed to build. A test compares it with the real header.
//
// Threads: any. A context belongs to the thread that has pushed it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/gpu/shared_library.h"

namespace hvd::rt {

// Handles; what they point to is the driver's.
struct CudaContextObject;
struct CudaStreamObject;
struct CudaEventObject;
using CudaContext = CudaContextObject*;
using CudaStream = CudaStreamObject*;
using CudaEvent = CudaEventObject*;
using CudaDevice = int;
using CudaAddress = unsigned long long;  // NOLINT(google-runtime-int): as the driver has it

// Results that are told apart here; all others are failures.
enum CudaResult : int {
  kCudaSuccess = 0,
  kCudaNoDevice = 100,
  kCudaNotReady = 600,
};

inline constexpr unsigned kCudaStreamNonBlocking = 1;  // does not wait for the null stream
inline constexpr unsigned kCudaEventDisableTiming = 2;
inline constexpr unsigned kCudaHostPortable = 1;  // pinned for all contexts

enum CudaPointerAttribute : int {
  kCudaPointerContext = 1,
  kCudaPointerMemoryType = 2,
  kCudaPointerIsManaged = 8,
  kCudaPointerDevice = 9,
};
inline constexpr unsigned kCudaMemoryHost = 1;
inline constexpr unsigned kCudaMemoryDevice = 2;

enum CudaCapture : int { kCudaNotCapturing = 0, kCudaCapturing = 1, kCudaCaptureInvalid = 2 };

struct CudaUuid {
  char bytes[16];
};

// The functions by what they do. Units: bytes; flags are the driver's.
struct CudaFunctions {
  CudaResult (*init)(unsigned flags);
  CudaResult (*driver_version)(int* version);  // 13000: 13.0
  CudaResult (*error_name)(CudaResult result, const char** name);
  CudaResult (*error_string)(CudaResult result, const char** text);

  CudaResult (*device_count)(int* count);
  CudaResult (*device)(CudaDevice* device, int index);
  CudaResult (*device_name)(char* name, int bytes, CudaDevice device);
  CudaResult (*device_uuid)(CudaUuid* uuid, CudaDevice device);

  CudaResult (*retain_context)(CudaContext* context, CudaDevice device);
  CudaResult (*release_context)(CudaDevice device);
  CudaResult (*push_context)(CudaContext context);
  CudaResult (*pop_context)(CudaContext* context);
  // The numerically least is the greatest priority.
  CudaResult (*priority_range)(int* least, int* greatest);

  CudaResult (*allocate)(CudaAddress* address, size_t bytes);
  CudaResult (*free)(CudaAddress address);
  CudaResult (*allocate_pinned)(void** address, size_t bytes, unsigned flags);
  CudaResult (*free_pinned)(void* address);
  CudaResult (*pin)(void* address, size_t bytes, unsigned flags);
  CudaResult (*unpin)(void* address);
  CudaResult (*pointer_attribute)(void* value, CudaPointerAttribute attribute, CudaAddress address);

  CudaResult (*copy_in)(CudaAddress to, const void* from, size_t bytes, CudaStream stream);
  CudaResult (*copy_out)(void* to, CudaAddress from, size_t bytes, CudaStream stream);
  CudaResult (*copy_within)(CudaAddress to, CudaAddress from, size_t bytes, CudaStream stream);
  CudaResult (*set_bytes)(CudaAddress to, unsigned char value, size_t bytes, CudaStream stream);

  CudaResult (*create_stream)(CudaStream* stream, unsigned flags, int priority);
  CudaResult (*destroy_stream)(CudaStream stream);
  CudaResult (*await_event)(CudaStream stream, CudaEvent event, unsigned flags);
  CudaResult (*query_stream)(CudaStream stream);
  CudaResult (*capture_state)(CudaStream stream, CudaCapture* state);
  // Calls `call(argument)` on a thread of the driver's once all that is on the stream has happened;
  // what comes after it waits for that. It may not call the driver. Not called once the context is
  // in an error.
  CudaResult (*launch_host)(CudaStream stream, void (*call)(void* argument), void* argument);

  CudaResult (*create_event)(CudaEvent* event, unsigned flags);
  CudaResult (*record_event)(CudaEvent event, CudaStream stream);
  CudaResult (*query_event)(CudaEvent event);
  CudaResult (*await_event_here)(CudaEvent event);  // blocks the calling thread
  CudaResult (*destroy_event)(CudaEvent event);
};

class CudaDriver {
 public:
  // NotFound: there is no driver here. Unimplemented: it is too old. Unavailable: it does not
  // start, or has no GPU; the driver is there.
  static absl::StatusOr<CudaDriver> Load(const std::string& name = "libcuda.so.1");

  const CudaFunctions& calls() const { return calls_; }
  int version() const { return version_; }  // 13000: 13.0
  int devices() const { return devices_; }  // that this process may see
  const std::string& path() const { return library_.path(); }
  // OK, or the driver's words: "cuMemAlloc: out of memory (CUDA_ERROR_OUT_OF_MEMORY)".
  absl::Status Check(CudaResult result, const char* what) const;

 private:
  CudaDriver() = default;
  absl::Status FindFunctions();
  absl::Status Begin();

  SharedLibrary library_;
  CudaFunctions calls_ = {};
  int version_ = 0;
  int devices_ = 0;
};

// "13.0"
std::string CudaVersionText(int version);

}  // namespace hvd::rt
