// SPDX-License-Identifier: Apache-2.0
#include "daemon/processes/process_end.h"

#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <vector>

#include "absl/strings/str_cat.h"

namespace hvd::daemon {
namespace {

// <linux/pidfd.h> as of 6.15.
struct PidfdInfo {
  uint64_t mask;
  uint64_t cgroup;
  uint32_t ids[11];
  int32_t exit_code;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr unsigned long kGetInfo = _IOWR(0xFF, 11, PidfdInfo);
constexpr uint64_t kInfoExit = 1 << 3;

constexpr unsigned long kExitingFlag = 0x4;  // PF_EXITING
// Numbers of proc(5)'s fields of stat, from the one behind the name.
constexpr size_t kState = 0, kFlags = 6, kExitCode = 49;

// Kept by the kernel once the parent has taken the status.
std::optional<int> KeptStatus(int pidfd) {
  PidfdInfo info{};
  info.mask = kInfoExit;
  if (ioctl(pidfd, kGetInfo, &info) != 0 || (info.mask & kInfoExit) == 0) return std::nullopt;
  return info.exit_code;
}

// Returns the status of a process that is ending, or is not taken yet.
std::optional<int> ListedStatus(int pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  std::stringstream text;
  text << file.rdbuf();
  const size_t name_end = text.str().rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream rest(text.str().substr(name_end + 1));
  std::vector<std::string> fields;
  for (std::string field; rest >> field;) fields.push_back(field);
  if (fields.size() <= kExitCode) return std::nullopt;
  const bool ending = (std::stoul(fields[kFlags]) & kExitingFlag) != 0 || fields[kState] == "Z";
  if (!ending) return std::nullopt;
  return std::stoi(fields[kExitCode]);
}

}  // namespace

std::optional<int> EndStatus(int pidfd, int pid) {
  if (const std::optional<int> kept = KeptStatus(pidfd)) return kept;
  const std::optional<int> listed = ListedStatus(pid);
  // If it is still there, the number was its own until now.
  if (syscall(SYS_pidfd_send_signal, pidfd, 0, nullptr, 0) == 0) return listed;
  return KeptStatus(pidfd);
}

std::string ProcessName(int pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/comm"));
  std::string name;
  std::getline(file, name);
  return name;
}

}  // namespace hvd::daemon
