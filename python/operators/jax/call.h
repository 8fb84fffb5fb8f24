// A collective that a compiled JAX program asks for: from XLA's call frame to a call of libhvd's,
// and the end of that as the end of XLA's future.
#pragma once

#include <hvd/hvd.h>

#include <functional>
#include <string>
#include <vector>

#include "python/operators/jax/xla_ffi.h"

namespace hvd::xla {

// Owned by CallsByName from Start on, until its end is told.
class Call {
 public:
  // Asks libhvd for it, without a wait.
  using Submit = hvd_status_t (*)(const Call& call, const hvd_options_t& options,
                                  hvd_handle_t* handle);

  // Reads the frame, and sets its future. Null: it cannot be; *error says why, and is XLA's.
  static Call* Make(CallFrame* frame, Submit submit, Error** error);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // What libhvd tells calls under way apart by: the name, in its process set.
  std::string key() const { return std::to_string(options_.process_set) + ":" + name_; }
  const std::vector<hvd_tensor_t>& inputs() const { return inputs_; }
  const std::vector<hvd_tensor_t>& outputs() const { return outputs_; }

  // False: libhvd has refused it, and its future has ended. Else `ended` is called once, perhaps
  // before this returns, from a thread of libhvd's.
  bool Begin(std::function<void()> ended);

 private:
  explicit Call(Submit submit) : submit_(submit) {}
  Error* Read(const CallFrame& frame);
  void ReadAttribute(const Attributes& attributes, int64_t index);
  Error* ReadBuffers(const CallFrame& frame, const Buffers& buffers,
                     std::vector<hvd_tensor_t>* tensors);
  void End(hvd_status_t status);
  static void Done(void* call, hvd_handle_t handle, hvd_status_t status);

  const Submit submit_;
  const Api* api_ = nullptr;
  Future* future_ = nullptr;
  std::string name_;
  hvd_options_t options_ = HVD_OPTIONS_INIT;
  std::vector<hvd_tensor_t> inputs_, outputs_;
  std::function<void()> ended_;
};

// An error of XLA's, which owns it.
Error* MakeError(const Api& api, ErrorCode code, const std::string& message);

}  // namespace hvd::xla
