// SPDX-License-Identifier: Apache-2.0
#include "python/operators/calls/call.h"

#include <utility>

namespace hvd {

bool Call::Begin(std::function<void()> ended, std::chrono::microseconds linger) {
  ended_ = std::move(ended);
  request_.options.name = request_.name.c_str();
  request_.options.contents = request_.contents.c_str();
  request_.options.done = &Call::Done;
  request_.options.done_arg = this;
  hvd_handle_t handle = 0;
  const hvd_status_t status = Submit(&handle);
  if (status != HVD_OK) {
    End(0, status);
    return false;
  }
  // From here on `this` may be gone.
  int32_t done = 0;
  if (linger.count() > 0) (void)hvd_wait_for(handle, linger.count(), &done);
  return true;
}

hvd_status_t Call::Submit(hvd_handle_t* handle) const {
  const hvd_tensor_t* const in = request_.inputs.data();
  const hvd_tensor_t* const out = request_.outputs.empty() ? nullptr : request_.outputs.data();
  const hvd_options_t* const options = &request_.options;
  const auto count = static_cast<int32_t>(request_.inputs.size());
  const bool group = count != 1;
  switch (request_.kind) {
    case CallKind::kAllreduce:
      return group ? hvd_grouped_allreduce_async(in, out, count, options, handle)
                   : hvd_allreduce_async(in, out, options, handle);
    case CallKind::kAllgather:
      return group ? hvd_grouped_allgather_async(in, out, count, options, handle)
                   : hvd_allgather_async(in, out, options, handle);
    case CallKind::kReducescatter:
      return group ? hvd_grouped_reducescatter_async(in, out, count, options, handle)
                   : hvd_reducescatter_async(in, out, options, handle);
    case CallKind::kBroadcast:
      return hvd_broadcast_async(in, out, options, handle);
    case CallKind::kAlltoall:
      break;
  }
  const std::vector<int64_t>& splits = request_.splits;
  return hvd_alltoall_async(in, splits.empty() ? nullptr : splits.data(),
                            static_cast<int32_t>(splits.size()), out, options, handle);
}

std::string Call::ErrorText(hvd_status_t status) {
  return std::string(hvd_status_name(status)) + ": " + hvd_last_error();
}

void Call::Done(void* self, hvd_handle_t handle, hvd_status_t status) {
  auto* const call = static_cast<Call*>(self);
  const std::function<void()> ended = std::move(call->ended_);
  call->End(handle, status);
  (void)hvd_release(handle);
  ended();
}

}  // namespace hvd
