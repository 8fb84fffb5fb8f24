/* A libnvidia-ml with three cards, out of bus order, of which one has fallen off the bus. */
#include <stdio.h>
#include <string.h>

struct pci_info {
  char legacy[16];
  unsigned domain, bus, device, id, subsystem;
  char bus_id[32];
};

int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) { return *count = 4, 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = (void*)(unsigned long)(index + 1);
  return index == 2 ? 15 : 0;
}
int nvmlDeviceGetUUID(void* device, char* uuid, unsigned size) {
  snprintf(uuid, size, "GPU-%lu0000000-aaaa", (unsigned long)device);
  return 0;
}
int nvmlDeviceGetPciInfo_v3(void* device, struct pci_info* info) {
  memset(info, 0, sizeof(*info));
  snprintf(info->bus_id, sizeof(info->bus_id), "00000000:%02lX:00.0", 9 - (unsigned long)device);
  return 0;
}
