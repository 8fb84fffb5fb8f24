// SPDX-License-Identifier: Apache-2.0
// Memory that operations use one after the other: it grows to what was needed most.
#pragma once

#include <cstddef>
#include <memory>

namespace hvd {

class GrowingRoom {
 public:
  // What was there is lost when it grows.
  std::byte* Take(size_t bytes) {
    if (bytes_ < bytes) {
      memory_.reset(new std::byte[bytes]);
      bytes_ = bytes;
    }
    return memory_.get();
  }

 private:
  std::unique_ptr<std::byte[]> memory_;
  size_t bytes_ = 0;
};

}  // namespace hvd
