// SPDX-License-Identifier: Apache-2.0
// The direct marks of some ranks, in this process's memory.
#pragma once

#include <sys/mman.h>

#include <memory>
#include <vector>

#include "runtime/engine/direct/direct.h"

namespace hvd::rt::test {

class DirectWorld {
 public:
  explicit DirectWorld(int size) : bytes_(Direct::Bytes(size)) {
    memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (int index = 0; index < size; ++index) {
      ranks.push_back(std::make_unique<Direct>(DirectPlace{&page_, memory_, index, size}));
    }
  }
  DirectWorld(const DirectWorld&) = delete;
  DirectWorld& operator=(const DirectWorld&) = delete;
  ~DirectWorld() { munmap(memory_, bytes_); }

  std::vector<std::unique_ptr<Direct>> ranks;

 private:
  const size_t bytes_;
  void* memory_;
  HostPage page_;
};

}  // namespace hvd::rt::test
