// A collective that a compiled JAX program asks for: from XLA's call frame to XLA's future.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "python/operators/calls/call.h"
#include "python/operators/jax/xla_ffi.h"

namespace hvd::xla {

class XlaCall : public Call {
 public:
  // Reads the frame, and sets its future. Null: it cannot be; *error says why, and is XLA's.
  static std::unique_ptr<XlaCall> Make(CallFrame* frame, CallKind kind, Error** error);

 protected:
  void End(hvd_handle_t handle, hvd_status_t status) override;

 private:
  XlaCall() = default;
  Error* Read(const CallFrame& frame);
  void ReadAttribute(const Attributes& attributes, int64_t index);
  Error* ReadBuffers(const CallFrame& frame, const Buffers& buffers,
                     std::vector<hvd_tensor_t>* tensors);

  const Api* api_ = nullptr;
  Future* future_ = nullptr;
};

// An error of XLA's, which owns it.
Error* MakeError(const Api& api, ErrorCode code, const std::string& message);

}  // namespace hvd::xla
