// SPDX-License-Identifier: Apache-2.0
// Which of NVIDIA's driver, GPUs and NCCL this machine has, for hvd_build_info and --check-build.
// It makes no context and begins no driver: a process may ask and fork afterwards.
#pragma once

#include <string>
#include <vector>

#include "runtime/gpu/nccl_library.h"

namespace hvd::rt {

struct GpuPlaces {
  std::string driver = "libcuda.so.1";
  std::string gpus = "/proc/driver/nvidia/gpus";  // has an entry for each GPU
  NcclPlaces nccl;
};

struct FoundPart {
  std::string version;  // empty: it is not there, or is of no use
  std::string path;
  std::string problem;  // why not: empty where `version` is not
};

struct GpuFound {
  FoundPart driver;
  int gpus = 0;
  FoundPart nccl;
  // Whether all is there that hvd needs to sum on GPUs by NCCL.
  bool complete() const { return !driver.version.empty() && gpus > 0 && !nccl.version.empty(); }
};

GpuFound LookForGpus(const GpuPlaces& places);

// Lines "name=value", as hvd_build_info has them: cuda, gpus, nccl, and why one is missing. Pure.
std::string FoundLines(const GpuFound& found);

// Where pip's package of NCCL lies if `libhvd`, a path, is pip's, too.
std::vector<std::string> NcclBeside(const std::string& libhvd);

}  // namespace hvd::rt
