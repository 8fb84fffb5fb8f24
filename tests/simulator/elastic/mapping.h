// SPDX-License-Identifier: Apache-2.0
// The beginning of a file of hvdd's, mapped as a worker maps it.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <utility>

namespace hvd::elastic_simulator {

class Mapping {
 public:
  Mapping() = default;
  // `grows`: the file is made so long first.
  Mapping(int fd, size_t bytes, bool grows) : bytes_(bytes) {
    if (grows && ftruncate(fd, static_cast<off_t>(bytes)) != 0) return;
    void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at != MAP_FAILED) at_ = at;
  }
  Mapping(Mapping&& other) noexcept
      : at_(std::exchange(other.at_, nullptr)), bytes_(other.bytes_) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(at_, other.at_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (at_ != nullptr) munmap(at_, bytes_);
  }
  // Null: it could not be.
  void* at() const { return at_; }

 private:
  void* at_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace hvd::elastic_simulator
