// SPDX-License-Identifier: Apache-2.0
#include "runtime/gpu/found.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

namespace hvd::rt {
namespace {

// With so many GPUs' entries, as the driver's folder has them.
class Machine {
 public:
  explicit Machine(int gpus) {
    char place[] = "/tmp/hvd-gpus.XXXXXX";
    folder_ = mkdtemp(place);
    for (int i = 0; i < gpus; ++i) {
      std::filesystem::create_directory(folder_ / ("0000:0" + std::to_string(i) + ":00.0"));
    }
    places.gpus = folder_.string();
    places.driver = "libno-such-cuda.so.1";
    places.nccl.system = "libno-such-nccl.so.2";
  }
  ~Machine() { std::filesystem::remove_all(folder_); }

  GpuPlaces places;

 private:
  std::filesystem::path folder_;
};

TEST_CASE("a machine with nothing says what was looked for") {
  Machine machine(0);
  machine.places.gpus = "/no/such/folder";
  const GpuFound found = LookForGpus(machine.places);
  CHECK_FALSE(found.complete());
  const std::string lines = FoundLines(found);
  CHECK(lines.find("cuda=\ncuda_problem=libno-such-cuda.so.1: ") == 0);
  CHECK(lines.find("\ngpus=0\n") != std::string::npos);
  CHECK(lines.find("\nnccl=\nnccl_problem=libno-such-nccl.so.2: ") != std::string::npos);
}

TEST_CASE("the driver alone, NCCL alone, and both") {
  Machine machine(2);
  const bool driver = GENERATE(true, false), nccl = GENERATE(true, false);
  if (driver) machine.places.driver = HVD_STAND_IN_CUDA;
  if (nccl) machine.places.nccl.beside = {HVD_STAND_IN_NCCL};
  const GpuFound found = LookForGpus(machine.places);
  CHECK(found.gpus == 2);
  CHECK(found.driver.version == (driver ? "13.0" : ""));
  CHECK(found.driver.problem.empty() == driver);
  CHECK(found.nccl.version == (nccl ? "2.28.9" : ""));
  CHECK(found.nccl.problem.empty() == nccl);
  CHECK(found.complete() == (driver && nccl));
  const std::string lines = FoundLines(found);
  CHECK((lines.find("cuda=13.0 (" HVD_STAND_IN_CUDA ")\n") != std::string::npos) == driver);
  CHECK((lines.find("nccl=2.28.9 (" HVD_STAND_IN_NCCL ")\n") != std::string::npos) == nccl);
}

TEST_CASE("both without a GPU are of no use") {
  Machine machine(0);
  machine.places.driver = HVD_STAND_IN_CUDA;
  machine.places.nccl.beside = {HVD_STAND_IN_NCCL};
  CHECK_FALSE(LookForGpus(machine.places).complete());
}

TEST_CASE("a library of that name that is no driver says so") {
  Machine machine(1);
  machine.places.driver = "libc.so.6";
  const FoundPart driver = LookForGpus(machine.places).driver;
  CHECK(driver.version.empty());
  CHECK(driver.problem.find("it has no cuDriverGetVersion") != std::string::npos);
}

TEST_CASE("a problem of several lines is one line") {
  GpuFound found;
  found.driver.problem = "first\nsecond";
  CHECK(FoundLines(found).find("cuda_problem=first second\n") != std::string::npos);
}

TEST_CASE("pip's NCCL lies beside pip's hvd") {
  CHECK(NcclBeside("/v/site-packages/hvd/lib/libhvd.so") ==
        std::vector<std::string>{"/v/site-packages/nvidia/nccl/lib/libnccl.so.2"});
  CHECK(NcclBeside("libhvd.so").empty());
  CHECK(NcclBeside("/opt/x/hvd/lib/libhvd.so").empty());
}

}  // namespace
}  // namespace hvd::rt
