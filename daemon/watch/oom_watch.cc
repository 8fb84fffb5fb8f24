// SPDX-License-Identifier: Apache-2.0
#include "daemon/watch/oom_watch.h"

#include <unistd.h>

#include <fstream>
#include <utility>

namespace hvd::daemon {
namespace {

// The own memory cgroup's file with a line "oom_kill N"; /proc/vmstat has one for the whole host.
std::string CounterFile() {
  std::ifstream cgroups("/proc/self/cgroup");
  std::string line;
  while (std::getline(cgroups, line)) {
    const size_t path = line.rfind(':') + 1;
    std::string file;
    if (line.rfind("0::", 0) == 0) file = "/sys/fs/cgroup" + line.substr(path) + "/memory.events";
    if (line.find(":memory:") != std::string::npos) {
      file = "/sys/fs/cgroup/memory" + line.substr(path) + "/memory.oom_control";
    }
    if (!file.empty() && access(file.c_str(), R_OK) == 0) return file;
  }
  return "/proc/vmstat";
}

}  // namespace

OomWatch::OomWatch() : OomWatch(CounterFile()) {}

OomWatch::OomWatch(std::string counter_file) : file_(std::move(counter_file)), seen_(Read()) {}

bool OomWatch::StruckSince() {
  const uint64_t now = Read();
  return now > std::exchange(seen_, now);
}

uint64_t OomWatch::Read() const {
  std::ifstream in(file_);
  std::string name;
  uint64_t value;
  while (in >> name >> value) {
    if (name == "oom_kill") return value;
  }
  return 0;
}

}  // namespace hvd::daemon
