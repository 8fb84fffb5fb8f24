// SPDX-License-Identifier: Apache-2.0
// Memory as a device has it, for a stand-in of the driver: its addresses are real ones that the
// host may not touch (it gets SIGSEGV), and the bytes lie elsewhere. Also what the host has pinned.
// Its owner locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace hvd::rt {

enum class MemoryKind { kPageable, kPinned, kDevice };

class DeviceMemory {
 public:
  DeviceMemory() = default;
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // 0: there is none left. Its bytes are no zeros.
  uint64_t Allocate(size_t bytes, int device);
  // False: nothing of the device's begins there. An address that was given back is never given
  // again. Memory that is `in_use` still keeps its bytes, so that a program that frees it too early
  // goes on.
  bool Free(uint64_t address, bool in_use = false);
  // Pinned memory of the host's; `owned` is freed by Unpin.
  void Pin(void* address, size_t bytes, std::unique_ptr<char[]> owned = nullptr);
  bool Unpin(void* address, bool owned);

  MemoryKind KindOf(uint64_t address) const;
  // Where the bytes lie that a device reads as `address`; null: they are not one piece of device
  // memory, or not any more.
  char* Bytes(uint64_t address, size_t bytes) const;
  // Returns the size of the allocation that begins at `address`; 0: none does.
  size_t SizeOf(uint64_t address) const;
  int DeviceOf(uint64_t address) const;  // -1: no device memory
  size_t allocations() const { return device_.size(); }
  size_t pins() const { return pinned_.size(); }

 private:
  struct Allocation {
    size_t bytes = 0;
    size_t reserved = 0;
    int device = 0;
    std::unique_ptr<char[]> storage;
  };
  struct Pinned {
    size_t bytes = 0;
    std::unique_ptr<char[]> owned;  // null: the caller's
  };
  std::map<uint64_t, Allocation>::const_iterator Around(uint64_t address) const;

  std::map<uint64_t, Allocation> device_;  // by first address
  std::map<uint64_t, Pinned> pinned_;
  std::vector<std::unique_ptr<char[]>> in_use_;  // of no allocation any more
};

}  // namespace hvd::rt
