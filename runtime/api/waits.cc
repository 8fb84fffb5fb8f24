// SPDX-License-Identifier: Apache-2.0
// Waiting for the handles of asynchronous calls.
#include <string>

#include "runtime/api/calls.h"
#include "runtime/api/process/process.h"
#include "runtime/device/nccl/nccl_call.h"
#include "runtime/device/staged/staged_call.h"

namespace hvd::rt {
namespace {

hvd_status_t UnknownHandle(hvd_handle_t handle) {
  return Fail(HVD_ERR_INVALID,
              "handle " + std::to_string(handle) +
                  " is unknown; it may have been waited for, or released, already");
}

// Why this wait is not for what the handle stands for; empty: it is.
std::string WhyNot(Wait wait, const Signature& signature) {
  if (wait == Wait::kForEnd) return "";
  if (wait == Wait::kForJoin) {
    return signature.kind == RequestKind::kJoin
               ? ""
               : "is no join's but of: " + std::string(KindName(signature.kind)) +
                     "; wait for it with hvd_wait";
  }
  if (signature.is_group() != (wait == Wait::kForGroup)) {
    return signature.is_group() ? "is a group's; take its results with hvd_wait_results"
                                : "is no group's; take its result with hvd_wait_result";
  }
  if (wait != Wait::kForAlltoall || signature.kind == RequestKind::kAlltoall) return "";
  return "is no alltoall's but of: " + std::string(KindName(signature.kind)) +
         "; take its result with hvd_wait_result";
}

// The child of a fork has the handles too, but waiting would do the parent's work in memory that is
// the job's.
hvd_status_t FindToWait(hvd_handle_t handle, Wait wait, std::shared_ptr<Pending>* pending) {
  if (Process::forked()) return NotInitialized();
  *pending = Process::Get().handles().Find(handle);
  if (*pending == nullptr) return UnknownHandle(handle);
  const std::string why = WhyNot(wait, (*pending)->requests[0]->signature);
  return why.empty() ? HVD_OK
                     : Fail(HVD_ERR_INVALID, "handle " + std::to_string(handle) + " " + why);
}

// If several threads wait for one handle, the first to take it away has the results.
hvd_status_t EndWait(hvd_handle_t handle, const Pending& pending) {
  const absl::Status status = WaitFor(pending);
  if (!Process::Get().handles().Remove(handle)) return UnknownHandle(handle);
  return NoteName(ReturnExecuted(status), pending.requests[0]->name);
}

}  // namespace

hvd_status_t WaitHandle(hvd_handle_t handle, Wait wait, const CallerResults& place) {
  return Guarded([&]() -> hvd_status_t {
    std::shared_ptr<Pending> pending;
    if (const hvd_status_t code = FindToWait(handle, wait, &pending); code != HVD_OK) return code;
    const hvd_status_t code = EndWait(handle, *pending);
    if (code == HVD_OK) GiveResults(pending->requests[0].get(), place);
    return code;
  });
}

hvd_status_t WaitGroupHandle(hvd_handle_t handle, hvd_tensor_t* results, int32_t count) {
  return Guarded([&]() -> hvd_status_t {
    std::shared_ptr<Pending> pending;
    if (const hvd_status_t code = FindToWait(handle, Wait::kForGroup, &pending); code != HVD_OK) {
      return code;
    }
    const size_t tensors = TensorsOf(*pending);
    if (results == nullptr || static_cast<size_t>(count) != tensors) {
      return Fail(HVD_ERR_INVALID, results == nullptr
                                       ? "results is NULL"
                                       : "count is " + std::to_string(count) + ", the group has " +
                                             std::to_string(tensors) + " tensors");
    }
    const hvd_status_t code = EndWait(handle, *pending);
    if (code == HVD_OK) GiveGroupResults(*pending, results);
    return code;
  });
}

// Null: it is done, and may be forgotten.
hvd_status_t FindToPoll(hvd_handle_t handle, int32_t* done, std::shared_ptr<Pending>* pending) {
  if (done == nullptr) return Fail(HVD_ERR_INVALID, "done is NULL");
  if (Process::forked()) return NotInitialized();
  *pending = Process::Get().handles().Find(handle);
  if (*pending == nullptr && !Process::Get().handles().WasGiven(handle)) {
    return UnknownHandle(handle);
  }
  *done = 1;
  return HVD_OK;
}

hvd_status_t PollHandle(hvd_handle_t handle, int32_t* done) {
  return Guarded([&]() -> hvd_status_t {
    std::shared_ptr<Pending> pending;
    const hvd_status_t code = FindToPoll(handle, done, &pending);
    if (code != HVD_OK || pending == nullptr) return code;
    if (pending->staged != nullptr) {
      *done = pending->staged->end().is_done() ? 1 : 0;
      return HVD_OK;
    }
    for (size_t i = 0; i < pending->requests.size(); ++i) {
      Request* const request = pending->requests[i].get();
      const std::shared_ptr<Engine> engine = pending->EngineOf(i).lock();
      const bool is_done = request->done.load(std::memory_order_acquire);
      if (!is_done && engine != nullptr && !engine->Poll(request)) *done = 0;
    }
    return HVD_OK;
  });
}

hvd_status_t WaitHandleFor(hvd_handle_t handle, int64_t microseconds, int32_t* done) {
  return Guarded([&]() -> hvd_status_t {
    if (microseconds < 0) return NegativeTime();
    std::shared_ptr<Pending> pending;
    const hvd_status_t code = FindToPoll(handle, done, &pending);
    if (code != HVD_OK || pending == nullptr) return code;
    const auto end = EndOf(microseconds);
    if (pending->staged != nullptr) {
      *done = pending->staged->end().WaitUntil(end) ? 1 : 0;
      return HVD_OK;
    }
    for (size_t i = 0; i < pending->requests.size(); ++i) {
      Request* const request = pending->requests[i].get();
      const std::shared_ptr<Engine> engine = pending->EngineOf(i).lock();
      const bool is_done = request->done.load(std::memory_order_acquire);
      if (!is_done && engine != nullptr && !engine->WaitUntil(request, end)) *done = 0;
    }
    return HVD_OK;
  });
}

hvd_status_t WaitHandleOn(hvd_handle_t handle, void* stream) {
  return Guarded([&]() -> hvd_status_t {
    std::shared_ptr<Pending> pending;
    const hvd_status_t code = FindToWait(handle, Wait::kForEnd, &pending);
    if (code != HVD_OK) return code;
    absl::Status status =
        pending->staged != nullptr ? pending->staged->end().WaitOn(stream) : AwaitDone(*pending);
    for (const auto& request : pending->requests) {
      if (status.ok()) status = OrderStream(*request, stream);
    }
    return NoteName(ReturnExecuted(status), pending->requests[0]->name);
  });
}

hvd_status_t CheckEpochAndGpus() {
  const std::shared_ptr<Engine> engine = Process::Get().engine();
  if (engine == nullptr) return NotInitialized();
  const hvd_status_t epoch = Return(engine->world().waiter().Check());
  return epoch != HVD_OK ? epoch : Return(Process::Get().devices().gpus().Check());
}

hvd_status_t ReleaseHandle(hvd_handle_t handle) {
  return Guarded([&]() -> hvd_status_t {
    if (Process::forked()) return NotInitialized();
    return Process::Get().handles().Release(handle) ? HVD_OK : UnknownHandle(handle);
  });
}

}  // namespace hvd::rt
