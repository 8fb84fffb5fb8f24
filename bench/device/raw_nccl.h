// SPDX-License-Identifier: Apache-2.0
// NCCL as a program without hvd would call it: the yardstick for hvd's own tensors on GPUs. Errors
// are thrown, on all ranks.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "bench/device/gpu_memory.h"
#include "hvd/hvd.h"
#include "runtime/gpu/communicator.h"

namespace gpu {

// All ranks of an hvd session, which made the first contact; one thread. It ends before the
// session and before the Side.
class RawNccl {
 public:
  struct Call {
    std::string op;  // as hvd-bench calls it
    hvd_dtype_t dtype = HVD_FLOAT32;
    size_t bytes_of_element = 4;
    const void* from = nullptr;
    size_t from_count = 0;
    void* to = nullptr;
    size_t to_count = 0;
  };

  // Every rank calls it. A Problem: there is no NCCL, or it refuses these ranks, as it does when
  // they share a GPU.
  RawNccl();
  ~RawNccl();
  RawNccl(const RawNccl&) = delete;
  RawNccl& operator=(const RawNccl&) = delete;

  // Why NCCL has no such call, in words; empty: it has. The same on all ranks.
  std::string Refusal(const Call& call) const;
  // Puts it on the stream. REQUIRES: no refusal.
  void Launch(const Call& call, hvd::rt::CudaStream stream);
  std::string version() const { return hvd::rt::NcclVersionText(nccl_->version()); }

 private:
  void Meet();
  void Exchange(const Call& call, hvd::rt::NcclType type, hvd::rt::CudaStream stream);
  void Must(hvd::rt::NcclResult result, const char* what) const;

  std::unique_ptr<hvd::rt::NcclLibrary> nccl_;
  std::unique_ptr<hvd::rt::Communicator> communicator_;
};

}  // namespace gpu
