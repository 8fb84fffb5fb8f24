// SPDX-License-Identifier: Apache-2.0
// A collective that a compiled JAX program asks for: from XLA's call frame to XLA's future.
#pragma once

#include <chrono>
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
  ~XlaCall() override;

  // Before XLA knows of the future its end goes on with nothing, so a small call may end where it
  // begins: a program whose calls follow one another needs no other thread. A large one is left to
  // libhvd's, and XLA computes meanwhile. (100 us: as long as that thread takes to begin.)
  std::chrono::microseconds linger() const override {
    return std::chrono::microseconds(elements_ <= kSmall ? 100 : 0);
  }
  // The calling thread is where this one begins, until it has begun.
  class Beginning {
   public:
    explicit Beginning(const XlaCall& call);
    ~Beginning();
    Beginning(const Beginning&) = delete;
    Beginning& operator=(const Beginning&) = delete;
  };

 protected:
  void End(hvd_handle_t handle, hvd_status_t status) override;

 private:
  XlaCall() = default;
  Error* Read(const CallFrame& frame);
  std::string MismatchText() const;
  void ReadAttribute(const Attributes& attributes, int64_t index);
  Error* ReadBuffers(const CallFrame& frame, const Buffers& buffers,
                     std::vector<hvd_tensor_t>* tensors);

  // The most input elements of a call that takes no longer than `linger`: 1 MB of float32.
  static constexpr int64_t kSmall = int64_t{1} << 18;

  const Api* api_ = nullptr;
  Future* future_ = nullptr;
  int64_t elements_ = 0;  // of the inputs
};

// Reads the number of the run of a program that makes the call. False: this XLA does not tell.
bool ReadRunId(const CallFrame& frame, int64_t* run);

// An error of XLA's, which owns it.
Error* MakeError(const Api& api, ErrorCode code, const std::string& message);

}  // namespace hvd::xla
