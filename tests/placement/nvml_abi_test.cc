// SPDX-License-Identifier: Apache-2.0
// Compiled where NVML's header is: what placement/nvml_abi.h declares by hand is what NVML has.
#include "placement/nvml_abi.h"

#include <nvml.h>

#include <catch2/catch.hpp>
#include <cstddef>
#include <string>
#include <type_traits>

namespace hvd {
namespace {

// Our type for one of the header's, where that is called otherwise.
template <class T>
struct Ours {
  using Type = T;
};
template <>
struct Ours<nvmlReturn_t> {
  using Type = int;
};
template <>
struct Ours<nvmlDevice_t> {
  using Type = NvmlDevice*;
};
template <>
struct Ours<nvmlDevice_t*> {
  using Type = NvmlDevice**;
};
template <>
struct Ours<nvmlPciInfo_t*> {
  using Type = NvmlPciInfo*;
};

template <class Real>
struct OurCall;
template <class R, class... A>
struct OurCall<R (*)(A...)> {
  using Type = typename Ours<R>::Type (*)(typename Ours<A>::Type...);
};

#define HVD_TEXT_OF(name) #name
#define HVD_REAL_NAME(name) HVD_TEXT_OF(name)  // after the header's own renaming

#define HVD_SAME(mine, real, symbol)                                                            \
  static_assert(std::is_same_v<decltype(NvmlFunctions::mine), OurCall<decltype(&real)>::Type>); \
  CHECK(std::string(HVD_REAL_NAME(real)) == symbol)

TEST_CASE("NVML is declared as its header has it") {
  STATIC_REQUIRE(sizeof(nvmlReturn_t) == sizeof(int));
  HVD_SAME(init, nvmlInit, "nvmlInit_v2");
  HVD_SAME(shutdown, nvmlShutdown, "nvmlShutdown");
  HVD_SAME(error_string, nvmlErrorString, "nvmlErrorString");
  HVD_SAME(count, nvmlDeviceGetCount, "nvmlDeviceGetCount_v2");
  HVD_SAME(handle, nvmlDeviceGetHandleByIndex, "nvmlDeviceGetHandleByIndex_v2");
  HVD_SAME(uuid, nvmlDeviceGetUUID, "nvmlDeviceGetUUID");
  HVD_SAME(name, nvmlDeviceGetName, "nvmlDeviceGetName");
  HVD_SAME(pci, nvmlDeviceGetPciInfo, "nvmlDeviceGetPciInfo_v3");
  HVD_SAME(cpu_affinity, nvmlDeviceGetCpuAffinity, "nvmlDeviceGetCpuAffinity");
  HVD_SAME(mig_mode, nvmlDeviceGetMigMode, "nvmlDeviceGetMigMode");
  HVD_SAME(mig_count, nvmlDeviceGetMaxMigDeviceCount, "nvmlDeviceGetMaxMigDeviceCount");
  HVD_SAME(mig_handle, nvmlDeviceGetMigDeviceHandleByIndex, "nvmlDeviceGetMigDeviceHandleByIndex");
}

TEST_CASE("NVML's numbers and structs are its header's") {
  STATIC_REQUIRE(sizeof(NvmlPciInfo) == sizeof(nvmlPciInfo_t));
  STATIC_REQUIRE(offsetof(NvmlPciInfo, domain) == offsetof(nvmlPciInfo_t, domain));
  STATIC_REQUIRE(offsetof(NvmlPciInfo, pci_subsystem_id) ==
                 offsetof(nvmlPciInfo_t, pciSubSystemId));
  STATIC_REQUIRE(offsetof(NvmlPciInfo, bus_id) == offsetof(nvmlPciInfo_t, busId));
  CHECK(kNvmlSuccess == int{NVML_SUCCESS});
  CHECK(kNvmlDriverNotLoaded == int{NVML_ERROR_DRIVER_NOT_LOADED});
  CHECK(kNvmlGpuIsLost == int{NVML_ERROR_GPU_IS_LOST});
  CHECK(kNvmlUuidBytes == unsigned{NVML_DEVICE_UUID_V2_BUFFER_SIZE});
  CHECK(kNvmlNameBytes == unsigned{NVML_DEVICE_NAME_V2_BUFFER_SIZE});
  CHECK(kNvmlMigEnabled == unsigned{NVML_DEVICE_MIG_ENABLE});
}

}  // namespace
}  // namespace hvd
