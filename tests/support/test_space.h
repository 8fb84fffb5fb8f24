// SPDX-License-Identifier: Apache-2.0
// A host's growing memory, of this process.
#pragma once

#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/session/shared_space.h"

namespace hvd::rt::test {

class TestSpace : public SharedSpace {
 public:
  absl::StatusOr<uint64_t> Take(size_t bytes) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (taken_ + bytes > most) return absl::ResourceExhaustedError("the space is full; take less");
    taken_ += bytes;
    pieces_.emplace_back(static_cast<std::byte*>(calloc(1, bytes)), free);
    return pieces_.size();
  }
  absl::StatusOr<std::shared_ptr<std::byte>> Map(uint64_t place, size_t) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (refuses_to_map) return absl::ResourceExhaustedError("ulimit -v is 1; raise that limit");
    return pieces_.at(place - 1);
  }
  void Give(uint64_t place, size_t bytes) override {
    std::lock_guard<std::mutex> lock(mutex_);
    pieces_.at(place - 1) = nullptr;
    taken_ -= bytes;
  }
  size_t taken() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return taken_;
  }

  size_t most = SIZE_MAX;
  bool refuses_to_map = false;

 private:
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<std::byte>> pieces_;
  size_t taken_ = 0;
};

}  // namespace hvd::rt::test
