// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "hvd/hvd.h"
#include "runtime/api/process/own_path.h"
#include "runtime/collective/kernels/reduce_kernels.h"
#include "runtime/engine/tuning/config.h"
#include "runtime/gpu/found.h"
#include "runtime/transport/ucx/ucx_transport.h"

namespace {

std::string Gpus() {
  hvd::rt::GpuPlaces places;
  places.nccl.named = hvd::rt::ReadNcclLibrary();
  places.nccl.beside = hvd::rt::NcclBeside(hvd::rt::OwnPath());
  const hvd::rt::GpuFound found = hvd::rt::LookForGpus(places);
  const bool usable = !found.driver.version.empty() && found.gpus > 0;
  const char* const ways = found.complete() ? "nccl host" : usable ? "host" : "";
  return hvd::rt::FoundLines(found) + "gpu_operations=" + ways + "\n";
}

std::string BuildInfo() {
  std::string info = "version=" HVD_VERSION "\n";
  info += "kernels=" + std::string(hvd::rt::KernelLevelName(hvd::rt::BestKernelLevel())) + "\n";
  info += "tcp=built in\n";
  info += "ucx=" + hvd::rt::UcxVersion() + "\n";
  return info + Gpus();
}

}  // namespace

extern "C" const char* hvd_build_info(void) {
  static const std::string info = BuildInfo();
  return info.c_str();
}

extern "C" const char* hvd_version(void) { return HVD_VERSION; }
