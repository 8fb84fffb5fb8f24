// SPDX-License-Identifier: Apache-2.0
// Memory that runs out, for one thread.
#pragma once

namespace hvd::rt::test {

// While it lives, so many allocations of this thread succeed, and no more. One at a time.
class ScarceMemory {
 public:
  explicit ScarceMemory(int allocations);
  ~ScarceMemory();
  ScarceMemory(const ScarceMemory&) = delete;
  ScarceMemory& operator=(const ScarceMemory&) = delete;
};

}  // namespace hvd::rt::test
