// SPDX-License-Identifier: Apache-2.0
// See README.md. NVML's own names over what HVD_STAND_IN_NVML describes.
#include "placement/nvml_abi.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hvd {

struct NvmlDevice {
  std::string uuid, name, bus;
  std::vector<int> near;
  bool lost = false;
  bool in_mig_mode = false;
  std::vector<std::string> instances;  // an empty one: none at this index
};

namespace {

constexpr int kInvalidArgument = 2;
constexpr int kNotSupported = 3;
constexpr int kNotFound = 6;
constexpr int kInsufficientSize = 7;
constexpr int kWordBits = 8 * sizeof(unsigned long);

struct Host {
  int init_result = kNvmlSuccess;
  std::deque<NvmlDevice> cards;
  std::deque<NvmlDevice> instances;  // of all cards; their handles
};

std::vector<std::string_view> Split(std::string_view text, char at) {
  std::vector<std::string_view> pieces;
  for (size_t end; (end = text.find(at)) != text.npos; text.remove_prefix(end + 1)) {
    pieces.push_back(text.substr(0, end));
  }
  pieces.push_back(text);
  return pieces;
}

bool Takes(std::string_view* text, std::string_view prefix) {
  if (text->substr(0, prefix.size()) != prefix) return false;
  text->remove_prefix(prefix.size());
  return true;
}

int Number(std::string_view text) {
  int number = 0;
  const char* end = text.data() + text.size();
  if (std::from_chars(text.data(), end, number).ptr == end && !text.empty()) return number;
  std::fprintf(stderr, "HVD_STAND_IN_NVML: %s is no number\n", std::string(text).c_str());
  std::abort();
}

std::vector<int> Cores(std::string_view text) {
  std::vector<int> cores;
  for (const std::string_view range : Split(text, ',')) {
    const std::vector<std::string_view> ends = Split(range, '-');
    for (int core = Number(ends.front()); core <= Number(ends.back()); ++core) {
      cores.push_back(core);
    }
  }
  return cores;
}

void Describe(std::string_view word, NvmlDevice* card) {
  if (Takes(&word, "name=")) {
    card->name = std::string(word);
    std::replace(card->name.begin(), card->name.end(), '_', ' ');
  } else if (Takes(&word, "bus=")) {
    card->bus = std::string(word);
  } else if (Takes(&word, "near=")) {
    card->near = Cores(word);
  } else if (Takes(&word, "mig=")) {
    card->in_mig_mode = true;
    for (const std::string_view uuid : Split(word, ',')) card->instances.emplace_back(uuid);
  } else if (word == "lost") {
    card->lost = true;
  } else {
    card->uuid = std::string(word);
  }
}

Host ReadHost() {
  Host host;
  const char* text = std::getenv("HVD_STAND_IN_NVML");
  for (const std::string_view item : Split(text == nullptr ? "" : text, ';')) {
    std::vector<std::string_view> words = Split(item, ' ');
    std::erase(words, "");
    if (words.empty()) continue;
    std::string_view first = words.front();
    if (Takes(&first, "fails=")) {
      host.init_result = Number(first);
      continue;
    }
    char bus[8];
    std::snprintf(bus, sizeof(bus), "%02zX", host.cards.size() + 1);
    NvmlDevice card{"", "NVIDIA Stand-in", bus, {}, false, false, {}};
    for (const std::string_view word : words) Describe(word, &card);
    host.cards.push_back(card);
  }
  return host;
}

std::optional<Host> host;  // between init and shutdown

int Write(const std::string& text, char* to, unsigned size) {
  if (text.size() >= size) return kInsufficientSize;
  text.copy(to, text.size());
  to[text.size()] = '\0';
  return kNvmlSuccess;
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
  host = ReadHost();
  return host->init_result;
}

int nvmlShutdown() {
  host.reset();
  return kNvmlSuccess;
}

const char* nvmlErrorString(int result) {
  return result == kNvmlDriverNotLoaded ? "Driver Not Loaded" : "Unknown Error";
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = host->cards.size();
  return kNvmlSuccess;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, NvmlDevice** device) {
  if (index >= host->cards.size()) return kInvalidArgument;
  *device = &host->cards[index];
  return (*device)->lost ? kNvmlGpuIsLost : kNvmlSuccess;
}

int nvmlDeviceGetUUID(NvmlDevice* device, char* uuid, unsigned size) {
  return Write(device->uuid, uuid, size);
}

int nvmlDeviceGetName(NvmlDevice* device, char* name, unsigned size) {
  return Write(device->name, name, size);
}

int nvmlDeviceGetPciInfo_v3(NvmlDevice* device, NvmlPciInfo* info) {
  *info = {};
  return Write("00000000:" + device->bus + ":00.0", info->bus_id, sizeof(info->bus_id));
}

int nvmlDeviceGetCpuAffinity(NvmlDevice* device, unsigned words, unsigned long* set) {
  if (device->near.empty()) return kNotSupported;
  for (const int core : device->near) {
    if (core / kWordBits >= static_cast<int>(words)) return kInsufficientSize;
    set[core / kWordBits] |= 1ul << (core % kWordBits);
  }
  return kNvmlSuccess;
}

int nvmlDeviceGetMigMode(NvmlDevice* device, unsigned* current, unsigned* pending) {
  *current = *pending = device->in_mig_mode ? kNvmlMigEnabled : 0;
  return kNvmlSuccess;
}

int nvmlDeviceGetMaxMigDeviceCount(NvmlDevice* device, unsigned* count) {
  *count = device->instances.size();
  return kNvmlSuccess;
}

int nvmlDeviceGetMigDeviceHandleByIndex(NvmlDevice* device, unsigned index, NvmlDevice** mig) {
  if (index >= device->instances.size() || device->instances[index].empty()) return kNotFound;
  const std::string& uuid = device->instances[index];
  host->instances.push_back({uuid, device->name + " MIG", "", {}, false, false, {}});
  *mig = &host->instances.back();
  return kNvmlSuccess;
}

}  // extern "C"

}  // namespace hvd
