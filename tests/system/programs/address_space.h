// SPDX-License-Identifier: Apache-2.0
// How much address space this process has, and may have.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

inline rlim_t AddressSpace() {
  long pages = 0;
  FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%ld", &pages) != 1) std::abort();
  std::fclose(file);
  return static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE));
}

// This process gets so much more address space than it has.
inline void LimitAddressSpace(rlim_t more = 16 << 20) {
  const rlimit limit = {AddressSpace() + more, RLIM_INFINITY};
  if (setrlimit(RLIMIT_AS, &limit) != 0) std::abort();
}

// … and again as much as there is, for its own last words.
inline void LiftLimit() {
  const rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
  if (setrlimit(RLIMIT_AS, &limit) != 0) std::abort();
}
