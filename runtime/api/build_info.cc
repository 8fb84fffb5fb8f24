#include <dlfcn.h>

#include <string>

#include "hvd/hvd.h"
#include "runtime/collective/kernels/reduce_kernels.h"
#include "runtime/transport/ucx/ucx_transport.h"

namespace {

// Whether a library that is only looked for at run time is there; it is not kept.
const char* FoundLibrary(const char* name) {
  void* library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return "";
  dlclose(library);
  return "found";
}

std::string BuildInfo() {
  std::string info = "version=" HVD_VERSION "\n";
  info += "kernels=" + std::string(hvd::KernelLevelName(hvd::BestKernelLevel())) + "\n";
  info += "tcp=built in\n";
  info += "ucx=" + hvd::UcxVersion() + "\n";
  info += std::string("cuda=") + FoundLibrary("libcuda.so.1") + "\n";
  info += std::string("nccl=") + FoundLibrary("libnccl.so.2") + "\n";
  return info;
}

}  // namespace

extern "C" const char* hvd_build_info(void) {
  static const std::string info = BuildInfo();
  return info.c_str();
}

extern "C" const char* hvd_version(void) { return HVD_VERSION; }
