// SPDX-License-Identifier: Apache-2.0
// A collective that MXNet's engine runs: from the arrays that an operation of the engine's has to
// the end that the engine is told.
#pragma once

#include <memory>
#include <vector>

#include "python/operators/calls/call.h"
#include "python/operators/calls/calls_by_name.h"
#include "python/operators/mxnet/mx_array.h"
#include "python/operators/mxnet/mx_results.h"

namespace hvd::mx {

// The request, but for the arrays.
struct Asked {
  CallKind kind = CallKind::kAllreduce;
  hvd_options_t options = HVD_OPTIONS_INIT;  // with the name
  std::vector<int64_t> splits;
  int priority = 0;
};

// The arrays of a call.
struct Arrays {
  std::vector<Array> inputs;
  std::vector<Array> outputs;  // none: in place, or `results`
  std::shared_ptr<Results> results;
};

class MxCall : public Call {
 public:
  MxCall(const Asked& asked, Arrays arrays);

  // Gives it to MXNet's engine, which begins it when what is under way with its arrays has ended,
  // and after the calls of its name that were pushed before.
  static void Push(std::unique_ptr<MxCall> call, int priority);

 protected:
  void End(hvd_handle_t handle, hvd_status_t status) override;

 private:
  // A call that has not begun, which the engine owns. It never begins where the engine leaves it
  // out, since an array that it reads or writes has an error.
  struct Waiting;
  static void Run(void* run_context, void* on_complete, void* waiting);

  bool in_place() const { return arrays_.outputs.empty() && arrays_.results == nullptr; }
  // Starts the call in its turn, unless the rank has left the job.
  static void Start(std::unique_ptr<MxCall> call, const CallsByName::Turn& turn);
  void Read();
  // The call without its arrays, of which nobody here waits: the other ranks are told that they ask
  // for something else, instead of waiting for this one.
  void GiveUpArrays(const std::string& error);
  // That the call has ended; an empty text: well.
  void Tell(const std::string& error);
  static void* MakeResult(void* call, const int64_t* shape, int32_t ndim, int32_t dtype,
                          int32_t index);

  Arrays arrays_;
  const uint64_t epoch_;
  OnComplete on_complete_ = {};  // without a callback: the engine has ended the operation
  int64_t* received_ = nullptr;
};

}  // namespace hvd::mx
