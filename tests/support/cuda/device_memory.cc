// SPDX-License-Identifier: Apache-2.0
#include "tests/support/cuda/device_memory.h"

#include <sys/mman.h>

#include <cstring>
#include <iterator>
#include <utility>

namespace hvd::rt {
namespace {

constexpr size_t kPage = 4096;
constexpr int kUnset = 0xcb;  // what new memory holds: no value that a test would take for right

}  // namespace

// Memory that was given back stays reserved, so that a late use of it is found.
DeviceMemory::~DeviceMemory() {
  for (const auto& [address, each] : device_) {
    munmap(reinterpret_cast<void*>(address), each.reserved);
  }
}

uint64_t DeviceMemory::Allocate(size_t bytes, int device) {
  if (bytes == 0) return 0;
  Allocation made;
  made.bytes = bytes;
  made.device = device;
  made.reserved = (bytes + kPage - 1) / kPage * kPage + kPage;  // and a page that nobody owns
  void* place =
      mmap(nullptr, made.reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) return 0;
  made.storage = std::make_unique_for_overwrite<char[]>(bytes);
  memset(made.storage.get(), kUnset, bytes);
  const auto address = reinterpret_cast<uint64_t>(place);
  device_[address] = std::move(made);
  return address;
}

bool DeviceMemory::Free(uint64_t address, bool in_use) {
  const auto found = device_.find(address);
  if (found == device_.end()) return false;
  if (in_use) in_use_.push_back(std::move(found->second.storage));
  device_.erase(found);  // the addresses stay reserved: PROT_NONE, and never given again
  return true;
}

void DeviceMemory::Pin(void* address, size_t bytes, std::unique_ptr<char[]> owned) {
  pinned_[reinterpret_cast<uint64_t>(address)] = {bytes, std::move(owned)};
}

bool DeviceMemory::Unpin(void* address, bool owned) {
  const auto found = pinned_.find(reinterpret_cast<uint64_t>(address));
  if (found == pinned_.end() || (found->second.owned != nullptr) != owned) return false;
  pinned_.erase(found);
  return true;
}

std::map<uint64_t, DeviceMemory::Allocation>::const_iterator DeviceMemory::Around(
    uint64_t address) const {
  auto after = device_.upper_bound(address);
  if (after == device_.begin()) return device_.end();
  const auto found = std::prev(after);
  return address < found->first + found->second.bytes ? found : device_.end();
}

MemoryKind DeviceMemory::KindOf(uint64_t address) const {
  if (Around(address) != device_.end()) return MemoryKind::kDevice;
  const auto after = pinned_.upper_bound(address);
  if (after == pinned_.begin()) return MemoryKind::kPageable;
  const auto found = std::prev(after);
  const bool inside = address < found->first + found->second.bytes;
  return inside ? MemoryKind::kPinned : MemoryKind::kPageable;
}

char* DeviceMemory::Bytes(uint64_t address, size_t bytes) const {
  const auto found = Around(address);
  if (found == device_.end()) return nullptr;
  const size_t at = address - found->first;
  return bytes <= found->second.bytes - at ? found->second.storage.get() + at : nullptr;
}

size_t DeviceMemory::SizeOf(uint64_t address) const {
  const auto found = device_.find(address);
  return found == device_.end() ? 0 : found->second.bytes;
}

int DeviceMemory::DeviceOf(uint64_t address) const {
  const auto found = Around(address);
  return found == device_.end() ? -1 : found->second.device;
}

}  // namespace hvd::rt
