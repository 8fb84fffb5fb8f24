// SPDX-License-Identifier: Apache-2.0
// As much of a GPU as this example needs: a stream, and copies. It asks NVIDIA's driver, which it
// looks for when it runs; a program that is built with CUDA would call cudaStreamCreate,
// cudaMemcpyAsync and the like instead.
#pragma once

#include <cstddef>
#include <memory>
#include <stdexcept>

namespace digits {

// what() says why.
struct NoGpu : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// One thread, that which opens it. A failure later than the constructor's is a std::runtime_error.
class Gpu {
 public:
  Gpu();  // finds the driver and its GPUs; throws NoGpu
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  // Takes one of them: ranks of a host take different ones where there are enough.
  void Open(int local_rank);
  int index() const { return index_; }
  void* stream() const { return stream_; }

  // Behind what is on the stream. The host's memory is free again when it returns.
  void Upload(const void* host, void* device, size_t bytes);
  // Behind what is on the stream. The bytes are there when it returns.
  void Download(const void* device, void* host, size_t bytes);

 private:
  struct Driver;
  std::unique_ptr<Driver> driver_;
  int index_ = 0;
  void* stream_ = nullptr;
};

}  // namespace digits
