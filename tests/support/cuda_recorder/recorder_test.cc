// SPDX-License-Identifier: Apache-2.0
// The recorders before the stand-ins, as they stand before NVIDIA's libraries elsewhere.
#include <dlfcn.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "runtime/gpu/gpu_device.h"
#include "runtime/gpu/nccl_library.h"

namespace hvd::rt {
namespace {

namespace fs = std::filesystem;

fs::path MakeFolder() {
  std::string name = fs::temp_directory_path() / "hvd-test.XXXXXX";
  REQUIRE(mkdtemp(name.data()) != nullptr);
  return name;
}

// The recorders with the stand-ins behind them. A process has one driver and one record: this is
// made once.
struct Recording {
  Recording() {
    Place(HVD_RECORDER_CUDA, folder / "libcuda.so.1");
    Place(HVD_RECORDER_NCCL, folder / "libnccl.so.2");
    fs::create_symlink(HVD_STAND_IN_CUDA, folder / "libhvd_recorded_cuda.so.1");
    fs::create_symlink(HVD_STAND_IN_NCCL, folder / "libhvd_recorded_nccl.so.2");
    setenv("HVD_RECORD", (folder / "calls").c_str(), 1);
    driver = std::make_unique<CudaDriver>(*CudaDriver::Load(folder / "libcuda.so.1"));
    NcclPlaces places;
    places.named = folder / "libnccl.so.2";
    nccl = std::make_unique<NcclLibrary>(*NcclLibrary::Load(places));
  }
  ~Recording() { fs::remove_all(folder); }
  static void Place(const fs::path& built, const fs::path& place) { fs::copy_file(built, place); }
  static Recording& Get() {
    static Recording one;
    return one;
  }
  std::string Lines() const {
    std::ifstream file(folder / ("calls." + std::to_string(getpid())));
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  const fs::path folder = MakeFolder();
  std::unique_ptr<CudaDriver> driver;
  std::unique_ptr<NcclLibrary> nccl;
};

// How many of the table's functions lie in the recorder, the others being in the real library.
template <class Table>
size_t CountIn(const Table& table, const std::string& library) {
  const auto* functions = reinterpret_cast<void* const*>(&table);
  size_t count = 0;
  for (size_t i = 0; i < sizeof(table) / sizeof(void*); ++i) {
    Dl_info info = {};
    count += dladdr(functions[i], &info) != 0 && info.dli_fname == library ? 1 : 0;
  }
  return count;
}

TEST_CASE("all that hvd calls is recorded") {
  const Recording& all = Recording::Get();
  CHECK(CountIn(all.driver->calls(), all.driver->path()) == sizeof(CudaFunctions) / sizeof(void*));
  // But for the two that young libraries alone have.
  CHECK(CountIn(all.nccl->calls(), all.nccl->path()) == sizeof(NcclFunctions) / sizeof(void*) - 2);
}

TEST_CASE("a line says thread, call, stream and result") {
  const Recording& all = Recording::Get();
  auto device = GpuDevice::Open(all.driver.get(), 0);
  REQUIRE(device.ok());
  const GpuDevice::Scope scope(**device);
  const CudaFunctions& calls = all.driver->calls();
  CudaAddress memory = 0;
  REQUIRE(calls.allocate(&memory, 64) == kCudaSuccess);
  REQUIRE(calls.set_bytes(memory, 7, 64, (*device)->stream()) == kCudaSuccess);
  auto event = (*device)->TakeEvent();
  REQUIRE(event->Record((*device)->stream()).ok());
  REQUIRE(calls.await_event_here(event->handle()) == kCudaSuccess);
  REQUIRE(calls.free(memory) == kCudaSuccess);
  CHECK(calls.await_event_here(reinterpret_cast<CudaEvent>(12345)) != kCudaSuccess);

  std::ostringstream stream;
  stream << "stream " << (*device)->stream();
  const std::string lines = all.Lines(), thread = " " + std::to_string(gettid()) + " ";
  CHECK(lines.find(thread + "cuMemsetD8Async(" + std::to_string(memory) + ", 7, 64, " +
                   stream.str() + ") = 0\n") != std::string::npos);
  std::ostringstream recorded;
  recorded << "cuEventRecord(" << event->handle() << ", " << stream.str() << ") = 0\n";
  CHECK(lines.find(recorded.str()) != std::string::npos);
  CHECK(lines.find("cuEventSynchronize(0x3039) = 400\n") != std::string::npos);
  CHECK(lines.find("cuMemsetD8Async") < lines.find(recorded.str()));
  CHECK(lines.find("ncclGetVersion(") != std::string::npos);
}

TEST_CASE("what hvd does not call is found in the real library") {
  void* recorder = dlopen(Recording::Get().driver->path().c_str(), RTLD_NOW);
  REQUIRE(recorder != nullptr);
  CHECK(dlsym(recorder, "hvd_stand_in_enqueue") != nullptr);
  CHECK(dlsym(recorder, "cuNoSuchFunction") == nullptr);
  dlclose(recorder);
}

}  // namespace
}  // namespace hvd::rt
