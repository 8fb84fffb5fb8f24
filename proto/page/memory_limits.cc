// SPDX-License-Identifier: Apache-2.0
#include "proto/page/memory_limits.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace hvd {
namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = kKiB * kKiB;

uint64_t Limit(__rlimit_resource resource) {
  struct rlimit limit {};
  const bool limited = getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return limited ? limit.rlim_cur : UINT64_MAX;
}

// A file of one number; `fallback` when it holds none ("max").
uint64_t ReadNumber(const std::string& path, uint64_t fallback) {
  std::ifstream file(path);
  uint64_t number = 0;
  return file >> number ? number : fallback;
}

// "VmSize:    1234 kB" of such a file, in bytes.
uint64_t ReadKiloBytes(const char* path, std::string_view key, uint64_t fallback) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    return strtoull(line.c_str() + key.size(), nullptr, 10) * kKiB;
  }
  return fallback;
}

// The path of this process's cgroup v2 below /sys/fs/cgroup: "" or "/a/b".
std::string OwnCgroup() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, 3, "0::") == 0) return line.size() > 4 ? line.substr(3) : "";
  }
  return "";
}

void ReadCgroup(MemoryLimits* limits) {
  for (std::string path = OwnCgroup();; path.resize(path.rfind('/'))) {
    const std::string place = "/sys/fs/cgroup" + path;
    const uint64_t most = ReadNumber(place + "/memory.max", UINT64_MAX);
    if (most < limits->cgroup) {
      limits->cgroup = most;
      limits->cgroup_used = ReadNumber(place + "/memory.current", 0);
    }
    if (path.empty()) return;
  }
}

// Whether `more` go beyond `most`; nothing wraps.
bool Exceeds(uint64_t used, uint64_t more, uint64_t most) {
  return most != UINT64_MAX && (used > most || more > most - used);
}

}  // namespace

MemoryLimits ReadMemoryLimits(int error) {
  MemoryLimits limits;
  limits.error = error;
  limits.address_space = Limit(RLIMIT_AS);
  limits.mapped = ReadKiloBytes("/proc/self/status", "VmSize:", 0);
  limits.file = Limit(RLIMIT_FSIZE);
  limits.overcommit = static_cast<int>(ReadNumber("/proc/sys/vm/overcommit_memory", 0));
  limits.commit_limit = ReadKiloBytes("/proc/meminfo", "CommitLimit:", UINT64_MAX);
  limits.committed = ReadKiloBytes("/proc/meminfo", "Committed_AS:", 0);
  ReadCgroup(&limits);
  return limits;
}

std::string SayBytes(uint64_t bytes) {
  if (bytes >= 10 * kMiB) return absl::StrCat((bytes + kMiB / 2) / kMiB, " MB");
  if (bytes < kMiB) return absl::StrCat((bytes + kKiB - 1) / kKiB, " KB");
  const uint64_t tenths = (bytes * 10 + kMiB / 2) / kMiB;
  return absl::StrCat(tenths / 10, ".", tenths % 10, " MB");
}

std::string WhyRefused(uint64_t bytes, const MemoryLimits& limits) {
  const std::string size = SayBytes(bytes);
  switch (limits.error) {
    case EFBIG:
      return absl::StrCat(strerror(limits.error), ": ", size, " are needed, and files may have ",
                          SayBytes(limits.file), " (ulimit -f); raise that limit");
    case EMFILE:
      return absl::StrCat(strerror(limits.error), "; raise the limit of open files (ulimit -n)");
    case ENOSPC:
      return absl::StrCat(size, " are needed: ", strerror(limits.error),
                          "; look at the memory that is free (free -m), and what lies in /dev/shm");
    default:
      break;
  }
  if (Exceeds(limits.mapped, bytes, limits.address_space)) {
    return absl::StrCat(size, " of address space are needed, and ", SayBytes(limits.mapped),
                        " of this process's ", SayBytes(limits.address_space),
                        " are in use (ulimit -v ", limits.address_space / kKiB,
                        "); raise that limit");
  }
  if (limits.overcommit == 2 && Exceeds(limits.committed, bytes, limits.commit_limit)) {
    return absl::StrCat(size, " are needed, and this host promises no more memory than it has (",
                        "vm.overcommit_memory is 2): ", SayBytes(limits.committed), " of ",
                        SayBytes(limits.commit_limit),
                        " are promised; raise vm.overcommit_ratio, or end other programs");
  }
  if (Exceeds(limits.cgroup_used, bytes, limits.cgroup)) {
    return absl::StrCat(size, " are needed, and the cgroup has ", SayBytes(limits.cgroup_used),
                        " of its ", SayBytes(limits.cgroup),
                        " in use (memory.max); give the job more");
  }
  return absl::StrCat(size, " are needed: ", strerror(limits.error),
                      "; look at the memory that is free there (free -m), and its limits (ulimit "
                      "-a)");
}

}  // namespace hvd
