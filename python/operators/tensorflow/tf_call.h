// SPDX-License-Identifier: Apache-2.0
// A collective that a TensorFlow kernel asks for: from the kernel's context to the end that
// TensorFlow is told.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "python/operators/calls/call.h"
#include "python/operators/tensorflow/tf_api.h"

namespace hvd::tf {

// The attributes of a node of the graph, for all its calls.
struct CallAttributes {
  CallKind kind = CallKind::kAllreduce;
  std::string name;
  std::string contents;
  hvd_options_t options = HVD_OPTIONS_INIT;
};

// `context` is the kernel's until `done` runs.
class TfCall : public Call {
 public:
  TfCall(const CallAttributes& attributes, TF_OpKernelContext* context, std::function<void()> done);

  // Takes the inputs, and makes the outputs whose shapes are known.
  void Read(Status* status);
  // TensorFlow starts what is next on threads of its own. (20 us: as long as two wake-ups take.)
  std::chrono::microseconds linger() const override {
    return std::chrono::microseconds(bytes_ <= kSmall ? 20 : 0);
  }
  // Tells TensorFlow of a failure, and that the kernel has ended.
  void Fail(Status* status);

 protected:
  void End(hvd_handle_t handle, hvd_status_t status) override;

 private:
  // The most bytes of a call that takes less time than a thread's wake-up.
  static constexpr size_t kSmall = 64 * 1024;

  hvd_tensor_t ReadInput(int index, Status* status);
  hvd_tensor_t MakeOutput(int index, hvd_tensor_t* input, Status* status);
  void ReadSplits(int index, Status* status);
  void* Allocate(int index, int type, const int64_t* shape, int ndim);
  static void* AllocateResult(void* call, const int64_t* shape, int32_t ndim, int32_t dtype,
                              int32_t index);

  TF_OpKernelContext* const context_;
  const std::function<void()> done_;
  std::deque<std::vector<int64_t>> shapes_;  // the inputs'
  size_t bytes_ = 0;                         // the inputs'
  int64_t* received_splits_ = nullptr;       // of an alltoall: an output
};

}  // namespace hvd::tf
