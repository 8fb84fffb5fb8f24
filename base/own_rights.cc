// SPDX-License-Identifier: Apache-2.0
#include "base/own_rights.h"

#include <linux/capability.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hvd {
namespace {

bool HoldsCapabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct held[_LINUX_CAPABILITY_U32S_3] = {};
  return syscall(SYS_capget, &header, held) == 0 && (held[0].permitted | held[1].permitted) != 0;
}

}  // namespace

// AT_SECURE alone is also set where a security module changes the domain, which gives nothing.
bool HasBorrowedRights() {
  if (getuid() != geteuid() || getgid() != getegid()) return true;
  return getauxval(AT_SECURE) != 0 && geteuid() != 0 && HoldsCapabilities();
}

}  // namespace hvd
