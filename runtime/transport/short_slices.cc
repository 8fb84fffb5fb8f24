// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/short_slices.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace hvd::rt {
namespace {

constexpr uint64_t kSliceNs = 100000;  // the least that the kernel takes

// The kernel's sched_attr, its first version; glibc has none.
struct SchedAttr {
  uint32_t size = sizeof(SchedAttr);
  uint32_t policy = 0;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime = 0;  // of an ordinary thread: its slice, in ns
  uint64_t deadline = 0;
  uint64_t period = 0;
};

}  // namespace

bool AskForShortSlices() {
  SchedAttr attr;
  if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) != 0) return false;
  if (attr.policy != 0) return false;  // the user chose another scheduler
  attr.size = sizeof(attr);
  attr.runtime = kSliceNs;
  return syscall(SYS_sched_setattr, 0, &attr, 0) == 0;
}

}  // namespace hvd::rt
