// SPDX-License-Identifier: Apache-2.0
// From a call of the C ABI to the engine and back.
#pragma once

#include <chrono>

#include "runtime/api/results.h"
#include "runtime/check/check.h"
#include "runtime/errors/errors.h"

namespace hvd::rt {

// Returns the time so long from now; the clock does not wrap.
std::chrono::steady_clock::time_point EndOf(int64_t microseconds);
hvd_status_t NegativeTime();

// `given` are the caller's options; call.options is filled from it.
hvd_status_t CallBlocking(Call&& call, const hvd_options_t* given, const CallerResults& place = {});
// Blocks so long at most; *handle is 0 when it has ended.
hvd_status_t CallBlockingFor(const Call& call, const hvd_options_t* given, int64_t microseconds,
                             hvd_handle_t* handle);
hvd_status_t CallAsync(Call call, const hvd_options_t* given, hvd_handle_t* handle);
// `results` has room for the group's tensors, or is null.
hvd_status_t CallGroupBlocking(GroupCall call, const hvd_options_t* given, hvd_tensor_t* results);
hvd_status_t CallGroupAsync(GroupCall call, const hvd_options_t* given, hvd_handle_t* handle);

// The kind of call that a caller expects behind a handle. A handle of another kind is refused, and
// stays.
enum class Wait { kForEnd, kForResult, kForAlltoall, kForGroup, kForJoin };
hvd_status_t WaitHandle(hvd_handle_t handle, Wait wait, const CallerResults& place = {});
hvd_status_t WaitGroupHandle(hvd_handle_t handle, hvd_tensor_t* results, int32_t count);
hvd_status_t PollHandle(hvd_handle_t handle, int32_t* done);
hvd_status_t WaitHandleFor(hvd_handle_t handle, int64_t microseconds, int32_t* done);
hvd_status_t WaitHandleOn(hvd_handle_t handle, void* stream);
// Returns what has gone wrong, as far as it is known now.
hvd_status_t CheckEpochAndGpus();
hvd_status_t ReleaseHandle(hvd_handle_t handle);

}  // namespace hvd::rt
