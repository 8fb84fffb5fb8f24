#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "hvd/hvd.h"
#include "runtime/collective/kernels/reduce_kernels.h"
#include "runtime/gpu/found.h"
#include "runtime/transport/ucx/ucx_transport.h"

namespace {

// Where this library lies; empty: it is not known.
std::string OwnPath() {
  Dl_info about = {};
  const bool known = dladdr(reinterpret_cast<const void*>(&hvd_version), &about) != 0;
  return known && about.dli_fname != nullptr ? about.dli_fname : "";
}

std::string Gpus() {
  hvd::GpuPlaces places;
  if (const char* named = getenv("HVD_NCCL_LIBRARY"); named != nullptr) places.nccl.named = named;
  places.nccl.beside = hvd::NcclBeside(OwnPath());
  const hvd::GpuFound found = hvd::LookForGpus(places);
  const bool usable = !found.driver.version.empty() && found.gpus > 0;
  return hvd::FoundLines(found) + "gpu_operations=" + (usable ? "host" : "") + "\n";
}

std::string BuildInfo() {
  std::string info = "version=" HVD_VERSION "\n";
  info += "kernels=" + std::string(hvd::KernelLevelName(hvd::BestKernelLevel())) + "\n";
  info += "tcp=built in\n";
  info += "ucx=" + hvd::UcxVersion() + "\n";
  return info + Gpus();
}

}  // namespace

extern "C" const char* hvd_build_info(void) {
  static const std::string info = BuildInfo();
  return info.c_str();
}

extern "C" const char* hvd_version(void) { return HVD_VERSION; }
