// SPDX-License-Identifier: Apache-2.0
#include "proto/page/memory_limits.h"

#include <catch2/catch.hpp>
#include <cerrno>

namespace hvd {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

bool Says(const MemoryLimits& limits, uint64_t bytes, const std::string& text) {
  const std::string why = WhyRefused(bytes, limits);
  INFO(why);
  CHECK(why.find(text) != std::string::npos);
  return why.find(text) != std::string::npos;
}

TEST_CASE("memory limits: what is refused for its address space names the size and ulimit -v") {
  MemoryLimits limits;
  limits.error = ENOMEM;
  limits.address_space = 512 * kMiB;
  limits.mapped = 490 * kMiB;
  limits.overcommit = 2;  // not it: nothing is promised yet
  limits.commit_limit = 16384 * kMiB;
  CHECK(WhyRefused(62 * kMiB, limits) ==
        "62 MB of address space are needed, and 490 MB of this process's 512 MB are in use (ulimit "
        "-v 524288); raise that limit");
  CHECK(WhyRefused(2 * kMiB, limits).find("ulimit -v") == std::string::npos);
}

TEST_CASE("memory limits: what the host does not promise names overcommit and its limit") {
  MemoryLimits limits;
  limits.error = ENOMEM;
  limits.overcommit = 2;
  limits.commit_limit = 16384 * kMiB;
  limits.committed = 16000 * kMiB;
  Says(limits, 500 * kMiB, "500 MB are needed");
  Says(limits, 500 * kMiB, "vm.overcommit_memory is 2");
  Says(limits, 500 * kMiB, "16000 MB of 16384 MB are promised; raise vm.overcommit_ratio");
  limits.overcommit = 0;  // the same numbers mean nothing there
  CHECK(WhyRefused(500 * kMiB, limits).find("overcommit") == std::string::npos);
}

TEST_CASE("memory limits: files' sizes, cgroups, descriptors, full memory") {
  MemoryLimits limits;
  limits.error = EFBIG;
  limits.file = 3 * kMiB / 2;
  Says(limits, 62 * kMiB,
       "File too large: 62 MB are needed, and files may have 1.5 MB (ulimit -f)");
  limits.error = ENOMEM;
  limits.cgroup = 100 * kMiB;
  limits.cgroup_used = 99 * kMiB;
  Says(limits, 2 * kMiB, "the cgroup has 99 MB of its 100 MB in use (memory.max)");
  limits.error = EMFILE;
  Says(limits, 1, "ulimit -n");
  limits.error = ENOSPC;
  Says(limits, 1, "No space left");
  limits = {};
  limits.error = ENOMEM;
  Says(limits, 1, "1 KB are needed: Cannot allocate memory; look at");
}

TEST_CASE("memory limits: sizes near the end of the numbers wrap nowhere") {
  MemoryLimits limits;
  limits.error = ENOMEM;
  limits.address_space = UINT64_MAX - 1;
  limits.mapped = UINT64_MAX - 2;
  Says(limits, UINT64_MAX, "ulimit -v");
}

TEST_CASE("memory limits: this process's own are read") {
  const MemoryLimits limits = ReadMemoryLimits(ENOMEM);
  CHECK(limits.error == ENOMEM);
  CHECK(limits.mapped > kMiB);
  CHECK(limits.commit_limit != UINT64_MAX);
  CHECK(limits.committed > 0);
}

}  // namespace
}  // namespace hvd
