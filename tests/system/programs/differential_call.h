// SPDX-License-Identifier: Apache-2.0
// One operation as this rank does it: in memory of any kind, in place or not, blocking or by a
// handle.
#pragma once

#include <memory>
#include <vector>

#include "bench/device/gpu_memory.h"
#include "tests/system/programs/checks.h"
#include "tests/system/programs/differential_plan.h"

namespace differential {

// The memory that a tensor lies in, between marked bytes.
class Guarded {
 public:
  Guarded() = default;
  struct Place {
    bool in_arena = false;
    size_t skipped = 0;  // bytes of its begin
  };
  Guarded(size_t bytes, const Place& place);
  unsigned char* data() { return all_ + kGuard + skipped_; }
  bool has_room() const { return all_ != nullptr; }
  // From here on the tensor, and what is marked, lie on the GPU too. On `stream`, as the following.
  void MoveToGpu(hvd::rt::CudaStream stream);
  unsigned char* on_gpu() const { return on_gpu_.data() + kGuard + skipped_; }
  // Marks the tensor's bytes too: nobody may write there any more.
  void Retire(hvd::rt::CudaStream stream);
  // Has what lies on the GPU.
  void Fetch(hvd::rt::CudaStream stream);
  // Whether all that is marked is as it was.
  bool is_whole() const;

 private:
  static constexpr size_t kGuard = 64;
  std::vector<unsigned char> own_;
  hvd::Buffer<unsigned char> shared_;
  unsigned char* all_ = nullptr;
  size_t bytes_ = 0, skipped_ = 0;
  bool retired_ = false;
  gpu::Memory on_gpu_;  // of as many bytes as all
};

class Call {
 public:
  // `own`: of this rank alone.
  Call(const Operation& operation, Random* own);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  const Operation& operation() const { return operation_; }
  void Run();
  void Submit();
  void Poll();
  void Wait();
  // After all calls of a phase: nobody has written to the memory after the call was over.
  void Finish();

 private:
  struct Part {
    Guarded input, output;
    int64_t input_shape[2] = {}, output_shape[2] = {};
    bool in_place = false;
  };
  void Fill(size_t tensor, Random* own);
  void MoveToGpu(Random* own);
  void Must(hvd_status_t status) const { ::Must(status, Describe(operation_)); }
  void Check(size_t tensor, const unsigned char* at) const;
  void CheckAll();
  const hvd_tensor_t* outputs() const { return allocates_ ? nullptr : outputs_.data(); }
  hvd_tensor_t* results() { return allocates_ ? results_.data() : nullptr; }
  const int64_t* splits() const;

  const Operation& operation_;
  const int member_;
  bool allocates_ = false;
  std::vector<Part> parts_;  // by tensor, as the following
  std::vector<hvd_tensor_t> inputs_, outputs_, results_;
  std::vector<int64_t> received_;  // of an alltoall
  hvd_options_t options_ = HVD_OPTIONS_INIT;
  hvd_handle_t handle_ = 0;
  hvd::rt::CudaStream stream_ = nullptr;  // of an operation on the GPU
  hvd::rt::GpuDevice::Event ready_;
};

}  // namespace differential
