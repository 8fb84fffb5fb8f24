#include "daemon/job/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <tuple>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace hvd {
namespace {

// The part of NVML's stable ABI that is used here; its headers are not needed to build.
struct NvmlDevice;
struct NvmlPciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
constexpr unsigned kUuidBytes = 96;

struct Nvml {
  int (*init)();
  int (*shutdown)();
  int (*count)(unsigned*);
  int (*handle)(unsigned, NvmlDevice**);
  int (*uuid)(NvmlDevice*, char*, unsigned);
  int (*pci)(NvmlDevice*, NvmlPciInfo*);
};

template <class Function>
bool Load(void* library, const char* name, Function** function) {
  *function = reinterpret_cast<Function*>(dlsym(library, name));
  return *function != nullptr;
}

bool LoadAll(void* library, Nvml* nvml) {
  return Load(library, "nvmlInit_v2", &nvml->init) &&
         Load(library, "nvmlShutdown", &nvml->shutdown) &&
         Load(library, "nvmlDeviceGetCount_v2", &nvml->count) &&
         Load(library, "nvmlDeviceGetHandleByIndex_v2", &nvml->handle) &&
         Load(library, "nvmlDeviceGetUUID", &nvml->uuid) &&
         Load(library, "nvmlDeviceGetPciInfo_v3", &nvml->pci);
}

std::vector<Gpu> Ask(const Nvml& nvml) {
  std::vector<Gpu> gpus;
  unsigned count = 0;
  if (nvml.count(&count) != 0) return gpus;
  for (unsigned index = 0; index < count; ++index) {
    NvmlDevice* device = nullptr;
    char uuid[kUuidBytes] = {};
    NvmlPciInfo pci{};
    // A card that has fallen off the bus is left out; the others still count.
    if (nvml.handle(index, &device) != 0 || nvml.uuid(device, uuid, kUuidBytes) != 0 ||
        nvml.pci(device, &pci) != 0) {
      continue;
    }
    gpus.push_back({uuid, pci.bus_id});
  }
  std::sort(gpus.begin(), gpus.end(),
            [](const Gpu& a, const Gpu& b) { return a.bus_id < b.bus_id; });
  return gpus;
}

const Gpu* Named(const std::vector<Gpu>& gpus, const std::string& word) {
  unsigned index;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), index);
  if (error == std::errc() && end == word.data() + word.size()) {
    return index < gpus.size() ? &gpus[index] : nullptr;
  }
  for (const Gpu& gpu : gpus) {
    if (word.size() > 4 && gpu.uuid.compare(0, word.size(), word) == 0) return &gpu;
  }
  return nullptr;
}

}  // namespace

std::vector<Gpu> FindGpus(const char* library) {
  const std::unique_ptr<void, int (*)(void*)> handle(dlopen(library, RTLD_NOW | RTLD_LOCAL),
                                                     dlclose);
  Nvml nvml{};
  if (handle == nullptr || !LoadAll(handle.get(), &nvml) || nvml.init() != 0) return {};
  std::vector<Gpu> gpus = Ask(nvml);
  nvml.shutdown();
  return gpus;
}

std::vector<std::string> VisibleGpus(const std::vector<Gpu>& gpus, const char* mask) {
  std::vector<std::string> uuids;
  if (mask == nullptr) {
    for (const Gpu& gpu : gpus) uuids.push_back(gpu.uuid);
    return uuids;
  }
  for (const absl::string_view word : absl::StrSplit(mask, ',')) {
    const Gpu* gpu = Named(gpus, std::string(absl::StripAsciiWhitespace(word)));
    if (gpu == nullptr) break;
    uuids.push_back(gpu->uuid);
  }
  return uuids;
}

}  // namespace hvd
