// A bucket of tensors that are reduced together, chunk by chunk, as they become ready: what is
// behind hvd_bucket_*. Built over the public asynchronous calls.
//
// Threads: any may make tensors ready; one at a time waits. The memory stays where it is for the
// bucket's life, also across hvd_shutdown and hvd_init.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hvd/hvd.h"
#include "runtime/api/bucket_agreement.h"
#include "runtime/api/bucket_plan.h"

namespace hvd {

class Bucket {
 public:
  struct Options {
    hvd_dtype_t dtype = HVD_FLOAT32;
    hvd_options_t reduction = HVD_OPTIONS_INIT;  // its name is not used
    std::string name;                            // the chunks' begins with it
  };
  // InvalidArgument when the tensors have more bytes than this host gives.
  static absl::StatusOr<std::unique_ptr<Bucket>> Create(BucketPlan plan, Options options);
  // Waits for what is under way.
  ~Bucket();
  Bucket(const Bucket&) = delete;
  Bucket& operator=(const Bucket&) = delete;

  // Null outside 0 to tensors - 1.
  void* View(int32_t index) const;
  // The C ABI's codes; the message is the thread's last error.
  hvd_status_t Ready(int32_t index);
  hvd_status_t Wait();
  // Ends a step of which only some tensors are ready.
  hvd_status_t Reset();

 private:
  struct Chunk {
    size_t missing = 0;       // tensors that are not ready
    hvd_handle_t handle = 0;  // 0: not submitted
  };

  Bucket(BucketPlan plan, Options options);
  bool Allocate();
  void ResetLocked();
  hvd_status_t ReadyLocked(size_t index);
  hvd_status_t SubmitLocked(size_t chunk);
  std::string MissingLocked() const;
  // Waits for a step's chunks and for `asked`, the agreement's.
  hvd_status_t Finish(hvd_handle_t asked, const std::vector<Chunk>& chunks);
  void FillIn(size_t most_chunks);

  const BucketPlan plan_;
  const Options options_;
  std::byte* memory_ = nullptr;
  bool in_arena_ = false;
  std::mutex mutex_;
  std::vector<bool> ready_;    // guarded by mutex_, by tensor
  std::vector<Chunk> chunks_;  // guarded by mutex_
  BucketAgreement agreement_;  // Ask and Take: guarded by mutex_
};

}  // namespace hvd
