// SPDX-License-Identifier: Apache-2.0
// On the stand-ins for the driver and for NCCL. Ranks are communicators of one process here.
#include "runtime/gpu/communicator.h"

#include <catch2/catch.hpp>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/gpu/gpu_device.h"

namespace hvd::rt {
namespace {

NcclPlaces StandIn() {
  NcclPlaces places;
  places.named = HVD_STAND_IN_NCCL;
  return places;
}

struct Gpu {
  CudaDriver driver = *CudaDriver::Load(HVD_STAND_IN_CUDA);
  NcclLibrary nccl = *NcclLibrary::Load(StandIn());
  std::unique_ptr<GpuDevice> device = *GpuDevice::Open(&driver, 0);
};

void AwaitReady(const Communicator& communicator) {
  for (absl::StatusOr<bool> ready = false; !*ready; ready = communicator.IsReady()) {
    REQUIRE(ready.ok());
    std::this_thread::yield();
  }
}

TEST_CASE("ranks meet without blocking, sum, and end") {
  Gpu gpu;
  const GpuDevice::Scope scope(*gpu.device);
  const auto id = Communicator::MakeId(gpu.nccl);
  REQUIRE(id.ok());
  auto first = Communicator::Start(&gpu.nccl, {2, 0, *id});
  REQUIRE(first.ok());
  CHECK_FALSE(*(*first)->IsReady());  // the other is not there
  auto second = Communicator::Start(&gpu.nccl, {2, 1, *id});
  REQUIRE(second.ok());
  AwaitReady(**first);
  AwaitReady(**second);

  const CudaFunctions& cuda = gpu.driver.calls();
  CudaStream streams[2] = {gpu.device->stream(), nullptr};
  REQUIRE(cuda.create_stream(&streams[1], kCudaStreamNonBlocking, 0) == kCudaSuccess);
  CudaAddress memory[2] = {};
  std::vector<int> values[2] = {{1, 2}, {10, 20}};
  for (const int rank : {0, 1}) {
    REQUIRE(cuda.allocate(&memory[rank], 8) == kCudaSuccess);
    REQUIRE(cuda.copy_in(memory[rank], values[rank].data(), 8, streams[rank]) == kCudaSuccess);
    void* place = reinterpret_cast<void*>(memory[rank]);
    const Communicator& communicator = rank == 0 ? **first : **second;
    REQUIRE(gpu.nccl.calls().all_reduce(place, place, 2, kNcclInt32, kNcclSum,
                                        communicator.handle(), streams[rank]) == kNcclSuccess);
  }
  for (const int rank : {0, 1}) {
    REQUIRE(cuda.copy_out(values[rank].data(), memory[rank], 8, streams[rank]) == kCudaSuccess);
    CHECK(values[rank] == std::vector<int>{11, 22});
    CHECK(cuda.free(memory[rank]) == kCudaSuccess);
  }
  for (Communicator* each : {first->get(), second->get()}) {
    CHECK(each->BeginEnd().ok());
    AwaitReady(*each);
    CHECK(each->End().ok());
  }
  CHECK(cuda.destroy_stream(streams[1]) == kCudaSuccess);
}

TEST_CASE("one that waits for a rank that never comes is aborted") {
  Gpu gpu;
  const GpuDevice::Scope scope(*gpu.device);
  const auto id = Communicator::MakeId(gpu.nccl);
  auto alone = Communicator::Start(&gpu.nccl, {2, 0, *id});
  REQUIRE(alone.ok());
  CHECK_FALSE(*(*alone)->IsReady());
  (*alone)->Abort();
  (*alone)->Abort();  // once more does nothing
}

}  // namespace
}  // namespace hvd::rt
