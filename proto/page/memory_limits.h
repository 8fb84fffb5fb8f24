// SPDX-License-Identifier: Apache-2.0
// Why the system refuses memory, in words: which limit of this process or host it is, how much it
// allows and what to do. Deciding is pure; ReadMemoryLimits looks.
#pragma once

#include <cstdint>
#include <string>

namespace hvd {

// Bytes; UINT64_MAX where there is no limit, or it cannot be read.
struct MemoryLimits {
  int error = 0;                        // errno of the refused call
  uint64_t address_space = UINT64_MAX;  // RLIMIT_AS
  uint64_t mapped = 0;                  // of it, by this process
  uint64_t file = UINT64_MAX;           // RLIMIT_FSIZE
  int overcommit = 0;                   // vm.overcommit_memory
  uint64_t commit_limit = UINT64_MAX;   // counts where that is 2
  uint64_t committed = 0;               // of it, on this host
  uint64_t cgroup = UINT64_MAX;         // memory.max, the least of the cgroup's and its parents'
  uint64_t cgroup_used = 0;             // of it
};

// Reads the limits of this process, which has just been refused with `error`.
MemoryLimits ReadMemoryLimits(int error);

// "62 MB", "1.5 MB".
std::string SayBytes(uint64_t bytes);

// "62 MB of address space are needed, and 490 MB of this process's 512 MB are in use (ulimit -v
// 524288); raise that limit": the end of a message about a call that asked for `bytes`.
std::string WhyRefused(uint64_t bytes, const MemoryLimits& limits);

}  // namespace hvd
