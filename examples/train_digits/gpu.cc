// SPDX-License-Identifier: Apache-2.0
#include "examples/train_digits/gpu.h"

#include <dlfcn.h>

#include <cstdint>
#include <string>

namespace digits {

// The driver's functions, and its types as it has them.
struct Gpu::Driver {
  Driver() : library(dlopen("libcuda.so.1", RTLD_NOW), dlclose) {
    if (library == nullptr) throw std::runtime_error(dlerror());
    Find("cuInit", &init);
    Find("cuGetErrorString", &error_string);
    Find("cuDeviceGetCount", &device_count);
    Find("cuDeviceGet", &device_of);
    Find("cuDevicePrimaryCtxRetain", &retain_context);
    Find("cuDevicePrimaryCtxRelease_v2", &release_context);
    Find("cuCtxPushCurrent_v2", &push_context);
    Find("cuCtxPopCurrent_v2", &pop_context);
    Find("cuStreamCreateWithPriority", &create_stream);
    Find("cuStreamDestroy_v2", &destroy_stream);
    Find("cuMemcpyHtoDAsync_v2", &copy_in);
    Find("cuMemcpyDtoHAsync_v2", &copy_out);
    Must(init(0), "cuInit");
    Must(device_count(&devices), "cuDeviceGetCount");
    if (devices == 0) throw std::runtime_error("the driver sees no GPU");
  }
  template <class Function>
  void Find(const char* name, Function** function) {
    *function = reinterpret_cast<Function*>(dlsym(library.get(), name));
    if (*function == nullptr) throw std::runtime_error(dlerror());
  }
  void Must(int result, const char* what) const {
    const char* text = nullptr;
    if (result == 0) return;
    if (error_string(result, &text) != 0 || text == nullptr)
      text = "an error unknown to the driver";
    throw std::runtime_error(std::string(what) + ": " + text);
  }

  std::unique_ptr<void, int (*)(void*)> library;
  int devices = 0, device = 0;
  void* context = nullptr;

  int (*init)(unsigned flags);
  int (*error_string)(int result, const char** text);
  int (*device_count)(int* count);
  int (*device_of)(int* device, int index);
  int (*retain_context)(void** context, int device);
  int (*release_context)(int device);
  int (*push_context)(void* context);
  int (*pop_context)(void** context);
  int (*create_stream)(void** stream, unsigned flags, int priority);
  int (*destroy_stream)(void* stream);
  int (*copy_in)(uint64_t to, const void* from, size_t bytes, void* stream);
  int (*copy_out)(void* to, uint64_t from, size_t bytes, void* stream);
};

Gpu::Gpu() try : driver_(std::make_unique<Driver>()) {
} catch (const std::runtime_error& error) {
  throw NoGpu(std::string("there is no GPU to use here: ") + error.what());
}

void Gpu::Open(int local_rank) {
  if (stream_ != nullptr) return;
  constexpr unsigned kNonBlocking = 1;  // does not wait for the default stream
  Driver& driver = *driver_;
  index_ = local_rank % driver.devices;
  driver.Must(driver.device_of(&driver.device, index_), "cuDeviceGet");
  driver.Must(driver.retain_context(&driver.context, driver.device), "cuDevicePrimaryCtxRetain");
  driver.Must(driver.push_context(driver.context), "cuCtxPushCurrent");
  driver.Must(driver.create_stream(&stream_, kNonBlocking, 0), "cuStreamCreate");
}

Gpu::~Gpu() {
  if (driver_->context == nullptr) return;
  if (stream_ != nullptr) driver_->destroy_stream(stream_);
  driver_->pop_context(&driver_->context);
  driver_->release_context(driver_->device);
}

// From memory that is not pinned the driver takes a copy first, and comes back then; to such memory
// it comes back when the bytes are there.
void Gpu::Upload(const void* host, void* device, size_t bytes) {
  const auto to = reinterpret_cast<uint64_t>(device);
  driver_->Must(driver_->copy_in(to, host, bytes, stream_), "cuMemcpyHtoDAsync");
}

void Gpu::Download(const void* device, void* host, size_t bytes) {
  const auto from = reinterpret_cast<uint64_t>(device);
  driver_->Must(driver_->copy_out(host, from, bytes, stream_), "cuMemcpyDtoHAsync");
}

}  // namespace digits
