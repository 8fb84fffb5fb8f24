// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/usable_cores.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
#include <vector>

namespace hvd::rt {
namespace {

constexpr double kNoQuota = std::numeric_limits<double>::infinity();

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// "200000 100000" or "max 100000".
double QuotaOfV2(const std::string& folder) {
  std::istringstream text(ReadFile(folder + "/cpu.max"));
  double quota = 0;
  double period = 0;
  return text >> quota >> period && period > 0 ? quota / period : kNoQuota;
}

double QuotaOfV1(const std::string& folder) {
  std::istringstream quota_text(ReadFile(folder + "/cpu.cfs_quota_us"));
  std::istringstream period_text(ReadFile(folder + "/cpu.cfs_period_us"));
  double quota = 0;
  double period = 0;
  const bool set = quota_text >> quota && period_text >> period && quota > 0 && period > 0;
  return set ? quota / period : kNoQuota;
}

// The folder and all above it up to `mount`: a parent's quota binds its children.
template <class QuotaOf>
double SmallestUpwards(const std::string& mount, std::string path, QuotaOf quota_of) {
  double smallest = quota_of(mount);
  while (path.size() > 1) {
    smallest = std::min(smallest, quota_of(mount + path));
    path.resize(path.find_last_of('/'));
  }
  return smallest;
}

int AffinityCores() {
  for (int cpus = 1024; cpus <= (1 << 20); cpus *= 2) {
    std::vector<cpu_set_t> set(CPU_ALLOC_SIZE(cpus) / sizeof(cpu_set_t));
    const size_t bytes = set.size() * sizeof(cpu_set_t);
    if (sched_getaffinity(0, bytes, set.data()) == 0) return CPU_COUNT_S(bytes, set.data());
  }
  return 1;
}

}  // namespace

double QuotaCores(std::string_view proc_self_cgroup, const std::string& cgroup_root) {
  double smallest = kNoQuota;
  std::istringstream lines{std::string(proc_self_cgroup)};
  for (std::string line; std::getline(lines, line);) {
    // hierarchy:controllers:path
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    if (controllers == ",,") {
      smallest = std::min({smallest, SmallestUpwards(cgroup_root, path, QuotaOfV2),
                           SmallestUpwards(cgroup_root + "/unified", path, QuotaOfV2)});
    } else if (controllers.find(",cpu,") != std::string::npos) {
      smallest = std::min({smallest, SmallestUpwards(cgroup_root + "/cpu", path, QuotaOfV1),
                           SmallestUpwards(cgroup_root + "/cpu,cpuacct", path, QuotaOfV1)});
    }
  }
  return smallest;
}

int UsableCores(int had) {
  const double quota = QuotaCores(ReadFile("/proc/self/cgroup"), "/sys/fs/cgroup");
  const double cores = std::min<double>(had > 0 ? had : AffinityCores(), quota);
  return std::max(1, static_cast<int>(cores));
}

}  // namespace hvd::rt
