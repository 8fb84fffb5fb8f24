// SPDX-License-Identifier: Apache-2.0
// On the stand-in for the driver.
#include "runtime/gpu/gpu_device.h"

#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "tests/support/cuda/enqueue.h"

namespace hvd::rt {
namespace {

class OneGpu {
 public:
  OneGpu() : driver_(*CudaDriver::Load(HVD_STAND_IN_CUDA)) {
    auto opened = GpuDevice::Open(&driver_, 0);
    REQUIRE(opened.ok());
    device = *std::move(opened);
    library_ = dlopen(HVD_STAND_IN_CUDA, RTLD_NOW);
    before_ = Symbol<uint64_t()>("hvd_stand_in_findings")();
  }
  ~OneGpu() {
    device = nullptr;
    CHECK(Symbol<uint64_t()>("hvd_stand_in_findings")() == before_);
    dlclose(library_);
  }
  uint64_t Calls(const char* name) const {
    return Symbol<uint64_t(const char*)>("hvd_stand_in_calls")(name);
  }

  std::unique_ptr<GpuDevice> device;

 private:
  template <class Function>
  Function* Symbol(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }
  CudaDriver driver_;
  void* library_ = nullptr;
  uint64_t before_ = 0;
};

TEST_CASE("a GPU that is not there is an error with the driver's words") {
  const CudaDriver driver = *CudaDriver::Load(HVD_STAND_IN_CUDA);
  const auto opened = GpuDevice::Open(&driver, 7);
  REQUIRE_FALSE(opened.ok());
  CHECK(std::string(opened.status().message()).find("cuDeviceGet: ") == 0);
}

TEST_CASE("an event passes when the stream has come to it") {
  OneGpu gpu;
  GpuDevice& device = *gpu.device;
  const GpuDevice::Scope scope(device);
  CudaAddress memory = 0;
  REQUIRE(device.calls().allocate(&memory, 4096) == kCudaSuccess);
  REQUIRE(device.calls().set_bytes(memory, 1, 4096, device.stream()) == kCudaSuccess);
  auto event = device.TakeEvent();
  REQUIRE(event.ok());
  REQUIRE(event->Record(device.stream()).ok());
  for (absl::StatusOr<bool> passed = false; !*passed; passed = event->HasPassed()) {
    std::this_thread::yield();
    REQUIRE(passed.ok());
  }
  CHECK(device.calls().free(memory) == kCudaSuccess);
}

TEST_CASE("events are used again: none is made after the first") {
  OneGpu gpu;
  GpuDevice& device = *gpu.device;
  const GpuDevice::Scope scope(device);
  const uint64_t before = gpu.Calls("cuEventCreate");
  for (int i = 0; i < 100; ++i) {
    auto event = device.TakeEvent();
    REQUIRE(event.ok());
    REQUIRE(event->Record(device.stream()).ok());
    REQUIRE(event->MakeWait(device.stream()).ok());
    GpuDevice::Event moved = *std::move(event);
    CHECK(moved.valid());
  }
  CHECK(gpu.Calls("cuEventCreate") - before == 1);
}

TEST_CASE("a thread that leaves the device is where it was before") {
  OneGpu gpu;
  const CudaFunctions& calls = gpu.device->calls();
  CudaContext other = nullptr;
  REQUIRE(calls.retain_context(&other, 0) == kCudaSuccess);
  REQUIRE(calls.push_context(other) == kCudaSuccess);
  { const GpuDevice::Scope scope(*gpu.device); }
  CudaContext still = nullptr;
  REQUIRE(calls.pop_context(&still) == kCudaSuccess);
  CHECK(still == other);
  CHECK(calls.pop_context(&still) != kCudaSuccess);  // nothing is left behind
}

TEST_CASE("many threads take events at once") {
  OneGpu gpu;
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&gpu] {
      const GpuDevice::Scope scope(*gpu.device);
      for (int round = 0; round < 200; ++round) {
        auto event = gpu.device->TakeEvent();
        if (event.ok()) (void)event->Record(gpu.device->stream()).ok();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(gpu.Calls("cuEventRecord") >= 800);
}

}  // namespace
}  // namespace hvd::rt
