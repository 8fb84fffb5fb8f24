// SPDX-License-Identifier: Apache-2.0
#include "placement/nvml.h"

#include <dlfcn.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "placement/nvml_abi.h"

namespace hvd {
namespace {

constexpr int kWordBits = 8 * sizeof(unsigned long);

template <class Function>
bool Load(void* library, const char* name, Function** function) {
  *function = reinterpret_cast<Function*>(dlsym(library, name));
  return *function != nullptr;
}

// False: what every NVML of the last years has is not there.
bool LoadAll(void* library, NvmlFunctions* nvml) {
  Load(library, "nvmlDeviceGetName", &nvml->name);
  Load(library, "nvmlDeviceGetCpuAffinity", &nvml->cpu_affinity);
  Load(library, "nvmlDeviceGetMigMode", &nvml->mig_mode);
  Load(library, "nvmlDeviceGetMaxMigDeviceCount", &nvml->mig_count);
  Load(library, "nvmlDeviceGetMigDeviceHandleByIndex", &nvml->mig_handle);
  return Load(library, "nvmlInit_v2", &nvml->init) &&
         Load(library, "nvmlShutdown", &nvml->shutdown) &&
         Load(library, "nvmlErrorString", &nvml->error_string) &&
         Load(library, "nvmlDeviceGetCount_v2", &nvml->count) &&
         Load(library, "nvmlDeviceGetHandleByIndex_v2", &nvml->handle) &&
         Load(library, "nvmlDeviceGetUUID", &nvml->uuid) &&
         Load(library, "nvmlDeviceGetPciInfo_v3", &nvml->pci);
}

std::optional<Gpu> Describe(const NvmlFunctions& nvml, NvmlDevice* device) {
  std::array<char, kNvmlUuidBytes> uuid = {};
  std::array<char, kNvmlNameBytes> name = {};
  if (nvml.uuid(device, uuid.data(), kNvmlUuidBytes) != kNvmlSuccess) return std::nullopt;
  const bool named =
      nvml.name != nullptr && nvml.name(device, name.data(), kNvmlNameBytes) == kNvmlSuccess;
  return Gpu{uuid.data(), named ? name.data() : "GPU"};
}

std::vector<int> NearCores(const NvmlFunctions& nvml, NvmlDevice* device) {
  std::array<unsigned long, CPU_SETSIZE / kWordBits> words = {};
  if (nvml.cpu_affinity == nullptr ||
      nvml.cpu_affinity(device, words.size(), words.data()) != kNvmlSuccess) {
    return {};
  }
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if ((words[core / kWordBits] >> (core % kWordBits) & 1) != 0) cores.push_back(core);
  }
  return cores;
}

// The instances are as near as their card.
void FindInstances(const NvmlFunctions& nvml, NvmlDevice* device, GpuCard* card) {
  unsigned mode = 0;
  unsigned pending = 0;
  unsigned most = 0;
  if (nvml.mig_mode == nullptr || nvml.mig_count == nullptr || nvml.mig_handle == nullptr) return;
  if (nvml.mig_mode(device, &mode, &pending) != kNvmlSuccess || mode != kNvmlMigEnabled) return;
  card->in_mig_mode = true;
  if (nvml.mig_count(device, &most) != kNvmlSuccess) return;
  for (unsigned index = 0; index < most; ++index) {
    NvmlDevice* handle = nullptr;
    if (nvml.mig_handle(device, index, &handle) != kNvmlSuccess) continue;
    std::optional<Gpu> instance = Describe(nvml, handle);
    if (!instance.has_value()) continue;
    instance->near_cores = card->gpu.near_cores;
    card->instances.push_back(*std::move(instance));
  }
}

// Nothing: the card has fallen off the bus, or is not for us; the others still count.
std::optional<GpuCard> AskCard(const NvmlFunctions& nvml, unsigned index) {
  NvmlDevice* device = nullptr;
  NvmlPciInfo pci{};
  if (nvml.handle(index, &device) != kNvmlSuccess) return std::nullopt;
  std::optional<Gpu> gpu = Describe(nvml, device);
  if (!gpu.has_value() || nvml.pci(device, &pci) != kNvmlSuccess) return std::nullopt;
  GpuCard card{pci.bus_id, *std::move(gpu)};
  card.gpu.near_cores = NearCores(nvml, device);
  FindInstances(nvml, device, &card);
  return card;
}

CardSearch Ask(const NvmlFunctions& nvml) {
  CardSearch search;
  unsigned count = 0;
  if (const int result = nvml.count(&count); result != kNvmlSuccess) {
    search.problem = absl::StrCat("NVML does not count the GPUs: ", nvml.error_string(result));
  }
  for (unsigned index = 0; index < count; ++index) {
    if (auto card = AskCard(nvml, index)) search.cards.push_back(*std::move(card));
  }
  std::sort(search.cards.begin(), search.cards.end(),
            [](const GpuCard& a, const GpuCard& b) { return a.bus_id < b.bus_id; });
  return search;
}

}  // namespace

CardSearch FindCards(const char* library) {
  const std::unique_ptr<void, int (*)(void*)> handle(dlopen(library, RTLD_NOW | RTLD_LOCAL),
                                                     dlclose);
  if (handle == nullptr) return {{}, dlerror()};
  NvmlFunctions nvml{};
  if (!LoadAll(handle.get(), &nvml)) {
    return {{}, absl::StrCat(library, " is too old, or not NVIDIA's")};
  }
  if (const int result = nvml.init(); result != kNvmlSuccess) {
    return {{}, absl::StrCat("NVML does not start: ", nvml.error_string(result))};
  }
  CardSearch search = Ask(nvml);
  nvml.shutdown();
  return search;
}

}  // namespace hvd
