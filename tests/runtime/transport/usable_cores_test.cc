// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/usable_cores.h"

#include <sched.h>
#include <stdlib.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace hvd::rt {
namespace {

class CgroupTree {
 public:
  CgroupTree() {
    char name[] = "/tmp/hvd-cgroup-XXXXXX";
    root_ = mkdtemp(name);
  }
  ~CgroupTree() { std::filesystem::remove_all(root_); }
  void Write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root_ + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  const std::string& root() const { return root_; }

 private:
  std::string root_;
};

TEST_CASE("no cgroup sets no quota") {
  const CgroupTree tree;
  CHECK(std::isinf(QuotaCores("", tree.root())));
  CHECK(std::isinf(QuotaCores("0::/\n", tree.root())));
  CHECK(std::isinf(QuotaCores("nonsense\n1:cpu\n", tree.root())));
}

TEST_CASE("version 2: the smallest quota from the root down to the process's group") {
  const CgroupTree tree;
  tree.Write("a/cpu.max", "300000 100000\n");
  tree.Write("a/b/cpu.max", "max 100000\n");
  CHECK(QuotaCores("0::/a/b\n", tree.root()) == 3);
  tree.Write("a/b/cpu.max", "150000 100000\n");
  CHECK(QuotaCores("0::/a/b\n", tree.root()) == 1.5);
  tree.Write("cpu.max", "50000 100000\n");
  CHECK(QuotaCores("0::/a/b\n", tree.root()) == 0.5);
}

TEST_CASE("version 1: quota over period, -1 is none; other controllers do not count") {
  const CgroupTree tree;
  tree.Write("cpu/job/cpu.cfs_quota_us", "-1\n");
  tree.Write("cpu/job/cpu.cfs_period_us", "100000\n");
  const char* groups = "4:memory:/job\n1:cpu,cpuacct:/job\n0::/\n";
  CHECK(std::isinf(QuotaCores(groups, tree.root())));
  tree.Write("cpu/job/cpu.cfs_quota_us", "200000\n");
  CHECK(QuotaCores(groups, tree.root()) == 2);
  CHECK(std::isinf(QuotaCores("2:cpuset:/job\n", tree.root())));
}

TEST_CASE("affinity counts, unless it is said how many cores there were") {
  CHECK(UsableCores() >= 1);
  int pinned = 0, told = 0;
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof(one), &one);
    pinned = UsableCores();
    told = UsableCores(UsableCores() + 1);
  }).join();
  CHECK(pinned == 1);
  std::ifstream groups("/proc/self/cgroup");
  std::stringstream text;
  text << groups.rdbuf();
  if (QuotaCores(text.str(), "/sys/fs/cgroup") >= 2) CHECK(told == 2);
}

}  // namespace
}  // namespace hvd::rt
