// SPDX-License-Identifier: Apache-2.0
// Whether all ranks have made the same bucket: asked beside the chunks of the first step, of which
// nothing waits for the answer; hvd_bucket_wait does. Once an epoch, over the public calls.
//
// The bucket sees to it that calls do not overlap.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "hvd/hvd.h"
#include "runtime/bucket/plan.h"

namespace hvd::rt {

class BucketAgreement {
 public:
  struct Side {
    const BucketPlan* plan = nullptr;  // outlives this
    hvd_dtype_t dtype = HVD_FLOAT32;
    int32_t process_set = HVD_GLOBAL_PROCESS_SET;
    std::string bucket;             // its name
    uint64_t (*epoch)() = nullptr;  // BucketHome::epoch
  };
  explicit BucketAgreement(Side side) : side_(std::move(side)) {}

  // Before a chunk is submitted. Nothing when it is asked already, or known in this epoch.
  hvd_status_t Ask();
  // Returns the handle that Ask has begun, to be waited for before End; 0: none.
  hvd_handle_t asked() const { return asked_; }
  // How it went, again and again until the step ends. HVD_ERR_MISMATCH names the difference.
  hvd_status_t End();
  // After a mismatch: how many chunks some rank has.
  size_t most_chunks() const { return most_chunks_; }
  // The step is over, which End has been called for: the next one may ask again.
  void Forget();

 private:
  hvd_status_t Compare();

  const Side side_;
  std::vector<int64_t> row_;  // hvd's from Ask to End
  hvd_handle_t asked_ = 0;
  hvd_status_t status_ = HVD_OK;  // of what was asked for this step
  std::string why_;
  size_t most_chunks_ = 0;
  uint64_t asked_in_ = 0, agreed_in_ = 0;  // epochs; 0: none
};

}  // namespace hvd::rt
