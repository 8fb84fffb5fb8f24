// SPDX-License-Identifier: Apache-2.0
// A GPU as a user's program has it: streams, events and memory of its own, beside hvd's. Errors are
// thrown.
#pragma once

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/gpu/gpu_device.h"

namespace gpu {

// The driver, the GPU or NCCL cannot do it; what() says which, and why.
struct Problem : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// How many GPUs this process sees; a Problem: none.
int CountGpus();

// The process's GPU, with some streams. Any thread.
class Side {
 public:
  // The one of this index; before the first Get, which else takes GPU 0.
  static void Open(int index);
  static Side& Get();
  // Lets go of all: before the program ends.
  static void Close();
  ~Side();

  const hvd::rt::GpuDevice& device() const { return *device_; }
  hvd::rt::GpuDevice& device() { return *device_; }
  // One of some; the first is the default stream.
  hvd::rt::CudaStream stream(size_t index) const { return streams_[index % streams_.size()]; }
  static constexpr size_t kStreams = 3;
  // Waits for all that is on the stream.
  void Await(hvd::rt::CudaStream stream);
  void Must(hvd::rt::CudaResult result, const char* what) const;

 private:
  explicit Side(int index);
  std::unique_ptr<hvd::rt::CudaDriver> driver_;
  std::unique_ptr<hvd::rt::GpuDevice> device_;
  std::vector<hvd::rt::CudaStream> streams_;
};

// Device memory.
class Memory {
 public:
  Memory() = default;
  explicit Memory(size_t bytes);
  ~Memory();
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;

  unsigned char* data() const { return data_; }  // on the device
  size_t bytes() const { return bytes_; }

 private:
  unsigned char* data_ = nullptr;
  size_t bytes_ = 0;
};

// `host` may be any memory, and is the caller's again when it returns.
void Upload(const void* host, unsigned char* device, size_t bytes, hvd::rt::CudaStream stream);
// Returns when the bytes are there.
void Download(void* host, const unsigned char* device, size_t bytes, hvd::rt::CudaStream stream);

}  // namespace gpu
