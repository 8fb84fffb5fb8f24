// SPDX-License-Identifier: Apache-2.0
// A bucket of tensors that are reduced together, chunk by chunk, as they become ready: what is
// behind hvd_bucket_*. Built over the public asynchronous calls.
//
// Threads: any may make tensors ready and wait for single ones; one at a time waits for all. The
// memory stays where it is for the
// bucket's life, also across hvd_shutdown and hvd_init.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "hvd/hvd.h"
#include "runtime/bucket/agreement.h"
#include "runtime/bucket/place.h"
#include "runtime/bucket/plan.h"
#include "runtime/bucket/ready_tensors.h"

namespace hvd::rt {

// What a bucket has of its process, and outlives it.
struct BucketHome {
  Arena* arena = nullptr;
  Gpus* gpus = nullptr;
  uint64_t (*epoch)() = nullptr;  // the number of the one that this process is in; 0: none
};

class Bucket {
 public:
  using Clock = std::chrono::steady_clock;

  struct Options {
    hvd_dtype_t dtype = HVD_FLOAT32;
    hvd_options_t reduction = HVD_OPTIONS_INIT;  // its texts are not used
    std::string name;                            // the chunks' begins with it
    std::string contents;                        // what the tensors are to the caller
    hvd_device_type_t device_type = HVD_CPU;     // where the tensors lie
    int32_t device_id = 0;
    bool compared = false;  // the caller knows that all ranks have made the same
  };
  // ResourceExhausted when the tensors have more bytes than this host or the GPU gives.
  static absl::StatusOr<std::unique_ptr<Bucket>> Create(BucketPlan plan, Options options,
                                                        const BucketHome& home);
  // Waits for what is under way.
  ~Bucket();
  Bucket(const Bucket&) = delete;
  Bucket& operator=(const Bucket&) = delete;

  // Null outside 0 to tensors - 1.
  void* View(int32_t index) const;
  // The C ABI's codes; the message is the thread's last error. On a GPU, `stream` writes it.
  hvd_status_t Ready(int32_t index, void* stream);
  // Copies `source`, of as many elements, and makes the tensor ready.
  hvd_status_t Put(int32_t index, const hvd_tensor_t& source);
  hvd_status_t Wait();
  // The same; on a GPU, `stream` goes on behind it as well.
  hvd_status_t WaitOn(void* stream);
  // Whether Wait would not block, at `end` at the latest.
  hvd_status_t WaitUntil(Clock::time_point end, int32_t* done);
  // Whether the tensor is reduced, likewise, and how that went.
  hvd_status_t WaitTensor(int32_t index, Clock::time_point end, int32_t* done);
  // Ends a step of which only some tensors are ready.
  hvd_status_t Reset();

 private:
  struct Chunk {
    hvd_handle_t handle = 0;  // 0: not submitted
    bool ended = false;
    hvd_status_t status = HVD_OK;  // once it has ended
    std::string why;
  };

  Bucket(BucketPlan plan, Options options, const BucketHome& home);
  absl::Status Allocate(const BucketHome& home);
  void ResetLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  hvd_status_t CheckNotReadyLocked(int32_t index) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  hvd_status_t ReadyLocked(size_t index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  hvd_status_t SubmitLocked(size_t chunk) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  hvd_status_t MissingLocked(const std::string& what, size_t begin, size_t end) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  hvd_status_t BeginWaitLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Once they are done. The error is the thread's last.
  hvd_status_t EndAgreement();
  hvd_status_t EndChunk(size_t chunk);
  hvd_status_t Finish();
  void AwaitAll();
  void FillIn();

  const BucketPlan plan_;
  const Options options_;
  std::unique_ptr<BucketPlace> place_;  // from Create on
  Mutex mutex_;
  ReadyTensors ready_ ABSL_GUARDED_BY(mutex_);
  std::vector<Chunk> chunks_ ABSL_GUARDED_BY(mutex_);
  BucketAgreement agreement_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd::rt
