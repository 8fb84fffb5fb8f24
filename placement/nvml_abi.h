// SPDX-License-Identifier: Apache-2.0
// The part of NVML's stable ABI that is used here, declared by hand: its header is not needed to
// build. A test compares it with the real header, where there is one.
#pragma once

namespace hvd {

struct NvmlDevice;  // theirs

struct NvmlPciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};

inline constexpr int kNvmlSuccess = 0;
inline constexpr int kNvmlDriverNotLoaded = 9;
inline constexpr int kNvmlGpuIsLost = 15;
inline constexpr unsigned kNvmlUuidBytes = 96;
inline constexpr unsigned kNvmlNameBytes = 96;
inline constexpr unsigned kNvmlMigEnabled = 1;

// Null: this driver's library is older than the function.
struct NvmlFunctions {
  int (*init)();
  int (*shutdown)();
  const char* (*error_string)(int);
  int (*count)(unsigned*);
  int (*handle)(unsigned, NvmlDevice**);
  int (*uuid)(NvmlDevice*, char*, unsigned);
  int (*name)(NvmlDevice*, char*, unsigned);
  int (*pci)(NvmlDevice*, NvmlPciInfo*);
  // A bit a core, in words of 64.
  int (*cpu_affinity)(NvmlDevice*, unsigned, unsigned long*);
  int (*mig_mode)(NvmlDevice*, unsigned* current, unsigned* pending);
  int (*mig_count)(NvmlDevice*, unsigned* most);
  // An index may have no instance.
  int (*mig_handle)(NvmlDevice*, unsigned, NvmlDevice**);
};

}  // namespace hvd
