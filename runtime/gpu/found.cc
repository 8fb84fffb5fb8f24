// SPDX-License-Identifier: Apache-2.0
#include "runtime/gpu/found.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace hvd::rt {
namespace {

// cuDriverGetVersion needs no cuInit.
FoundPart LookForDriver(const std::string& name) {
  FoundPart part;
  const auto library = SharedLibrary::Open(name);
  if (!library.ok()) {
    part.problem = std::string(library.status().message());
    return part;
  }
  part.path = library->path();
  CudaResult (*ask)(int* version) = nullptr;
  SymbolLoader load(*library);
  load.Must("cuDriverGetVersion", &ask);
  int version = 0;
  if (!load.status().ok()) {
    part.problem = std::string(load.status().message());
  } else if (const CudaResult result = ask(&version); result != kCudaSuccess) {
    part.problem = absl::StrCat(part.path, " does not say its version: error ", int{result});
  } else {
    part.version = CudaVersionText(version);
  }
  return part;
}

FoundPart LookForNccl(const NcclPlaces& places) {
  FoundPart part;
  const auto nccl = NcclLibrary::Load(places);
  if (nccl.ok()) {
    part.path = nccl->path();
    part.version = NcclVersionText(nccl->version());
  } else {
    part.problem = std::string(nccl.status().message());
  }
  return part;
}

int CountEntries(const std::string& folder) {
  std::error_code error;
  int count = 0;
  for (auto entry = std::filesystem::directory_iterator(folder, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    ++count;
  }
  return count;
}

// A value is one line.
std::string Line(const char* name, std::string value) {
  for (char& letter : value) {
    if (letter == '\n') letter = ' ';
  }
  return absl::StrCat(name, "=", value, "\n");
}

std::string PartLines(const char* name, const FoundPart& part) {
  const std::string value =
      part.version.empty() ? "" : absl::StrCat(part.version, " (", part.path, ")");
  std::string lines = Line(name, value);
  if (!part.problem.empty()) lines += Line(absl::StrCat(name, "_problem").c_str(), part.problem);
  return lines;
}

}  // namespace

GpuFound LookForGpus(const GpuPlaces& places) {
  GpuFound found;
  found.driver = LookForDriver(places.driver);
  found.gpus = CountEntries(places.gpus);
  found.nccl = LookForNccl(places.nccl);
  return found;
}

std::string FoundLines(const GpuFound& found) {
  return absl::StrCat(PartLines("cuda", found.driver), Line("gpus", absl::StrCat(found.gpus)),
                      PartLines("nccl", found.nccl));
}

// site-packages/hvd/lib/libhvd.so and site-packages/nvidia/nccl/lib/libnccl.so.2
std::vector<std::string> NcclBeside(const std::string& libhvd) {
  const auto packages = std::filesystem::path(libhvd).parent_path().parent_path().parent_path();
  const std::string name = packages.filename().string();
  if (name != "site-packages" && name != "dist-packages") return {};
  return {(packages / "nvidia" / "nccl" / "lib" / "libnccl.so.2").string()};
}

}  // namespace hvd::rt
