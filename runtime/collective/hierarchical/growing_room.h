// SPDX-License-Identifier: Apache-2.0
// Memory that operations use one after the other: it grows to what was needed most.
#pragma once

#include <cstddef>
#include <memory>

namespace hvd::rt {

class GrowingRoom {
 public:
  // The content is lost when the room grows.
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

}  // namespace hvd::rt
