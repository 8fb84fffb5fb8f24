// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/staged/staging.h"

#include <catch2/catch.hpp>

#include "runtime/gpu/cuda_driver.h"

namespace hvd::rt {
namespace {

TEST_CASE("sizes are few, and little of large ones is lost") {
  const size_t bytes = GENERATE(size_t{0}, size_t{1}, size_t{65536}, size_t{65537}, size_t{9} << 20,
                                (size_t{100} << 20) + 1, size_t{5} << 30);
  const size_t size = Staging::SizeFor(bytes);
  CHECK(size >= bytes);
  CHECK(size >= Staging::kLeast);
  if (bytes > (size_t{8} << 20)) CHECK(size - bytes <= bytes / 8);
  CHECK(Staging::SizeFor(size) == size);
}

class Fixture {
 public:
  Fixture() : driver(CudaDriver::Load(HVD_STAND_IN_CUDA).value()) {
    device = GpuDevice::Open(&driver, 0).value();
  }

  CudaDriver driver;
  std::shared_ptr<GpuDevice> device;
  Arena arena;
  Staging staging{&arena};
};

TEST_CASE_METHOD(Fixture, "what is given back is taken again") {
  const Staging::Piece first = staging.Take(100, device).value();
  const Staging::Piece other = staging.Take(100, device).value();
  CHECK(first.memory != other.memory);
  CHECK(arena.At(first.memory, first.bytes) >= 0);
  staging.Give(first);
  CHECK(staging.Take(first.bytes, device).value().memory == first.memory);
  staging.Give(first);
  staging.Give(other);
  staging.Give({});
  staging.Clear();
}

TEST_CASE_METHOD(Fixture, "the driver knows the memory as long as it is kept") {
  const Staging::Piece piece = staging.Take(1, device).value();
  unsigned type = 0;
  const auto ask = [&] {
    return driver.calls().pointer_attribute(&type, kCudaPointerMemoryType,
                                            reinterpret_cast<CudaAddress>(piece.memory));
  };
  CHECK(ask() == kCudaSuccess);
  CHECK(type == kCudaMemoryHost);
  staging.Give(piece);
  CHECK(ask() == kCudaSuccess);
  staging.Clear();
  CHECK(ask() != kCudaSuccess);
}

}  // namespace
}  // namespace hvd::rt
