// SPDX-License-Identifier: Apache-2.0
// The stand-in as hvd meets it: a library that CudaDriver loads.
#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <string>

#include "runtime/gpu/cuda_driver.h"
#include "tests/support/cuda/findings.h"
#include "tests/support/cuda/stand_in.h"

namespace hvd::rt {
namespace {

class Device {
 public:
  Device()
      : driver_(*CudaDriver::Load(HVD_STAND_IN_CUDA)),
        library_(dlopen(HVD_STAND_IN_CUDA, RTLD_NOW)) {
    CudaContext context = nullptr;
    REQUIRE(calls().retain_context(&context, 0) == kCudaSuccess);
    REQUIRE(calls().push_context(context) == kCudaSuccess);
  }
  ~Device() {
    CudaContext context = nullptr;
    calls().pop_context(&context);
    dlclose(library_);
  }

  const CudaFunctions& calls() const { return driver_.calls(); }
  const CudaDriver& driver() const { return driver_; }
  CudaStream Stream() const {
    CudaStream stream = nullptr;
    REQUIRE(calls().create_stream(&stream, kCudaStreamNonBlocking, 0) == kCudaSuccess);
    return stream;
  }
  CudaEvent Recorded(CudaStream stream) const {
    CudaEvent event = nullptr;
    REQUIRE(calls().create_event(&event, kCudaEventDisableTiming) == kCudaSuccess);
    REQUIRE(calls().record_event(event, stream) == kCudaSuccess);
    return event;
  }
  CudaAddress Memory(size_t bytes) const {
    CudaAddress address = 0;
    REQUIRE(calls().allocate(&address, bytes) == kCudaSuccess);
    return address;
  }
  CudaResult AwaitAll() const { return Symbol<CudaResult()>("cuCtxSynchronize")(); }
  size_t found() const { return findings_.Since().size(); }
  std::string Finding(size_t index) const { return findings_.Since().at(index); }

 private:
  template <class Function>
  Function* Symbol(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }

  CudaDriver driver_;
  void* library_;
  const Findings findings_{HVD_STAND_IN_CUDA};
};

constexpr size_t kBytes = 1 << 16;

TEST_CASE("bytes go to the device and back, in the order of the streams") {
  const Device device;
  const CudaFunctions& cuda = device.calls();
  CHECK(device.driver().devices() == 1);
  const CudaStream in = device.Stream(), out = device.Stream();
  const CudaAddress memory = device.Memory(kBytes);
  void* from = nullptr;
  void* to = nullptr;
  REQUIRE(cuda.allocate_pinned(&from, kBytes, kCudaHostPortable) == kCudaSuccess);
  REQUIRE(cuda.allocate_pinned(&to, kBytes, kCudaHostPortable) == kCudaSuccess);
  memset(from, 7, kBytes);
  REQUIRE(cuda.copy_in(memory, from, kBytes, in) == kCudaSuccess);
  const CudaEvent copied = device.Recorded(in);
  REQUIRE(cuda.await_event(out, copied, 0) == kCudaSuccess);
  REQUIRE(cuda.copy_out(to, memory, kBytes, out) == kCudaSuccess);
  const CudaEvent back = device.Recorded(out);
  REQUIRE(cuda.await_event_here(back) == kCudaSuccess);
  CHECK(memcmp(from, to, kBytes) == 0);
  CHECK(cuda.free(memory) == kCudaSuccess);
  CHECK(cuda.free_pinned(from) == kCudaSuccess);
  CHECK(cuda.free_pinned(to) == kCudaSuccess);
  for (const CudaEvent event : {copied, back}) CHECK(cuda.destroy_event(event) == kCudaSuccess);
  for (const CudaStream stream : {in, out}) CHECK(cuda.destroy_stream(stream) == kCudaSuccess);
  CHECK(device.found() == 0);
}

TEST_CASE("a stream that does not wait is found, whatever the bytes were") {
  const Device device;
  const CudaFunctions& cuda = device.calls();
  const CudaStream in = device.Stream(), out = device.Stream();
  const CudaAddress memory = device.Memory(kBytes);
  REQUIRE(cuda.set_bytes(memory, 1, kBytes, in) == kCudaSuccess);
  REQUIRE(cuda.set_bytes(memory + 4, 2, 4, out) == kCudaSuccess);
  CHECK(device.found() == 1);
  CHECK(device.Finding(0).find("nothing orders the two") != std::string::npos);
  cuda.destroy_stream(in);
  cuda.destroy_stream(out);
  cuda.free(memory);
}

TEST_CASE("memory that goes too early, twice, or is of the wrong kind is found") {
  const Device device;
  const CudaFunctions& cuda = device.calls();
  const CudaStream stream = device.Stream();
  CudaAddress memory = device.Memory(kBytes);
  SECTION("too early") {
    cuda.set_bytes(memory, 1, kBytes, stream);
    cuda.free(memory);
    CHECK(device.Finding(0).find("freed while") != std::string::npos);
  }
  SECTION("twice") {
    cuda.free(memory);
    CHECK(cuda.free(memory) != kCudaSuccess);
    CHECK(device.Finding(0).find("was freed before") != std::string::npos);
  }
  SECTION("used afterwards") {
    cuda.free(memory);
    CHECK(cuda.set_bytes(memory, 1, 1, stream) != kCudaSuccess);
    CHECK(device.Finding(0).find("wrong kind of memory, was freed") != std::string::npos);
  }
  SECTION("beyond its end") {
    CHECK(cuda.set_bytes(memory + 1, 1, kBytes, stream) != kCudaSuccess);
    cuda.free(memory);
  }
  SECTION("the host's memory as the device's") {
    char mine = 0;
    CHECK(cuda.set_bytes(reinterpret_cast<CudaAddress>(&mine), 1, 1, stream) != kCudaSuccess);
    cuda.free(memory);
  }
  CHECK(device.found() == 1);
  cuda.destroy_stream(stream);
}

TEST_CASE("who has waited for the device may free what any stream has touched") {
  const Device device;
  const CudaFunctions& cuda = device.calls();
  const CudaStream lasting = device.Stream(), ended = device.Stream();
  const CudaAddress one = device.Memory(kBytes), other = device.Memory(kBytes);
  REQUIRE(cuda.set_bytes(one, 1, kBytes, lasting) == kCudaSuccess);
  REQUIRE(cuda.set_bytes(other, 1, kBytes, ended) == kCudaSuccess);
  cuda.destroy_stream(ended);
  REQUIRE(device.AwaitAll() == kCudaSuccess);
  cuda.free(one);
  cuda.free(other);
  CHECK(device.found() == 0);
  cuda.destroy_stream(lasting);
}

TEST_CASE("an event that was never recorded, and a call without a context, are found") {
  const Device device;
  const CudaFunctions& cuda = device.calls();
  const CudaStream stream = device.Stream();
  CudaEvent event = nullptr;
  REQUIRE(cuda.create_event(&event, kCudaEventDisableTiming) == kCudaSuccess);
  cuda.await_event(stream, event, 0);
  CHECK(device.found() == 1);
  CudaContext context = nullptr;
  REQUIRE(cuda.pop_context(&context) == kCudaSuccess);
  CHECK(cuda.query_stream(stream) != kCudaSuccess);
  CHECK(device.found() == 2);
  REQUIRE(cuda.push_context(context) == kCudaSuccess);
  cuda.destroy_event(event);
  cuda.destroy_stream(stream);
}

TEST_CASE("what a test orders of the stand-in is read from words") {
  const StandInSettings none = ReadStandInSettings(nullptr);
  CHECK(none.devices == 1);
  CHECK(none.failing.empty());
  const StandInSettings some =
      ReadStandInSettings("devices=3 delay_us=0 fail=cuMemAlloc_v2:2 report=/r");
  CHECK(some.devices == 3);
  CHECK(some.delay.count() == 0);
  CHECK(some.failing == "cuMemAlloc_v2");
  CHECK(some.fails_at == 2);
  CHECK(some.report == "/r");
}

}  // namespace
}  // namespace hvd::rt
