// SPDX-License-Identifier: Apache-2.0
// Looking for the libraries, where they are and where they are not.
#include <catch2/catch.hpp>
#include <string>

#include "runtime/gpu/cuda_driver.h"
#include "runtime/gpu/nccl_library.h"

namespace hvd::rt {
namespace {

bool Holds(const absl::Status& status, const std::string& words) {
  return std::string(status.message()).find(words) != std::string::npos;
}

TEST_CASE("a driver that is not there is not found, and said by its name") {
  const auto driver = CudaDriver::Load("libno-such-cuda.so.1");
  CHECK(absl::IsNotFound(driver.status()));
  CHECK(Holds(driver.status(), "libno-such-cuda.so.1"));
}

TEST_CASE("a library that is no driver is too old for one, and the missing functions are named") {
  const auto driver = CudaDriver::Load("libc.so.6");
  CHECK(absl::IsUnimplemented(driver.status()));
  CHECK(Holds(driver.status(), "libc.so.6 is too old: it has no cuInit, "));
}

TEST_CASE("NCCL is looked for where it is said to be, and nowhere else then") {
  NcclPlaces places;
  places.named = "/no/such/libnccl.so";
  places.system = "libc.so.6";
  const auto nccl = NcclLibrary::Load(places);
  CHECK(absl::IsNotFound(nccl.status()));
  CHECK(Holds(nccl.status(), "HVD_NCCL_LIBRARY is /no/such/libnccl.so: "));
}

TEST_CASE("what this process has loaded comes before what lies beside hvd") {
  NcclPlaces places;
  places.beside = {"/no/such/libnccl.so"};
  places.system = "libc.so.6";  // loaded, and no NCCL
  CHECK(absl::IsUnimplemented(NcclLibrary::Load(places).status()));
}

TEST_CASE("where NCCL is nowhere, each place says why") {
  NcclPlaces places;
  places.beside = {"/no/such/libnccl.so"};
  places.system = "libno-such-nccl.so.2";
  const auto nccl = NcclLibrary::Load(places);
  CHECK(absl::IsNotFound(nccl.status()));
  CHECK(Holds(nccl.status(), "/no/such/libnccl.so"));
  CHECK(Holds(nccl.status(), "libno-such-nccl.so.2"));
}

TEST_CASE("versions read as their makers write them") {
  CHECK(CudaVersionText(13000) == "13.0");
  CHECK(CudaVersionText(12080) == "12.8");
  CHECK(NcclVersionText(22809) == "2.28.9");
  CHECK(NcclVersionText(21800) == "2.18.0");
  CHECK(NcclVersionText(2708) == "2.7.8");
}

}  // namespace
}  // namespace hvd::rt
