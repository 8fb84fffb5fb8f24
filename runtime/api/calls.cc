// SPDX-License-Identifier: Apache-2.0
#include "runtime/api/calls.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "runtime/api/process/process.h"
#include "runtime/check/check_tensor.h"
#include "runtime/device/nccl/nccl_call.h"

namespace hvd::rt {
namespace {

// The clock must not wrap: ten years.
constexpr int64_t kLongestWaitUs = int64_t{10} * 365 * 86400 * 1000000;

// The caller's options and the set that they name, of which this rank is a member.
hvd_status_t FindTarget(const hvd_options_t* given, bool asynchronous, hvd_options_t* options,
                        CallTarget* target) {
  if (absl::Status read = ReadOptions(given, options); !read.ok()) return Return(read);
  if (absl::Status told = CheckTelling(*options, asynchronous); !told.ok()) return Return(told);
  if (Process::forked()) return NotInitialized();
  const absl::Status chosen = target->Choose(options->process_set);
  if (chosen.ok()) return HVD_OK;
  // Every rank is a member of the global one: it is missing before hvd_init and after hvd_shutdown.
  const bool global = options->process_set == HVD_GLOBAL_PROCESS_SET;
  return global || Process::Get().engine() == nullptr ? NotInitialized() : Return(chosen);
}

hvd_status_t StartGroup(const GroupCall& call, const ProcessSet& set, Pending* pending) {
  auto requests = CheckGroup(call, set.membership());
  if (!requests.ok()) return Return(requests.status());
  pending->requests = *std::move(requests);
  pending->engine = set.shared_engine();
  return HVD_OK;
}

bool IsOnGpu(const Pending& pending) {
  return pending.requests[0]->signature.device_type != HVD_CPU;
}

// Where its tensors lie decides which way it goes.
absl::Status Submit(const ProcessSet& set, Pending* pending) {
  if (IsOnGpu(*pending)) {
    if (GoesDirectly(pending->requests, *set.route)) {
      return SubmitDirectly(pending->requests, &Process::Get().devices().gpus(), set);
    }
    return Process::Get().devices().host_way().Submit(pending->requests, set, &pending->staged);
  }
  return pending->requests.size() == 1 ? set.engine->Submit(pending->requests[0].get())
                                       : set.engine->SubmitGroup(pending->requests);
}

// A call of its own: one request, checked.
hvd_status_t StartOne(const Call& call, const ProcessSet& set, Pending* pending) {
  pending->engine = set.shared_engine();
  pending->requests.push_back(std::make_unique<Request>());
  Request* const request = pending->requests[0].get();
  const hvd_status_t code = Return(CheckCall(call, set.membership(), request));
  return NoteName(code, request->name);
}

// It never runs in this thread, so it is an asynchronous one, waited for.
hvd_status_t CallOnGpu(const Call& call, const ProcessSet& set, const CallerResults& place) {
  Pending pending;
  if (const hvd_status_t code = StartOne(call, set, &pending); code != HVD_OK) return code;
  Request* const request = pending.requests[0].get();
  request->buffers.wants_received_splits = place.received_splits != nullptr;
  const absl::Status submitted = Submit(set, &pending);
  if (!submitted.ok()) return NoteName(Return(submitted), request->name);
  const hvd_status_t code = NoteName(ReturnExecuted(WaitFor(pending)), request->name);
  if (code == HVD_OK) GiveResults(request, place);
  return code;
}

// The others hear of the barrier first: what this rank has submitted before may need what they do
// behind theirs. Then that has finished, wherever it lies.
absl::Status RunBarrier(const ProcessSet& set, Request* request) {
  HostWay* const way = Process::Get().devices().used_host_way();
  const uint64_t last = way != nullptr ? way->last() : 0;
  Engine::Earlier earlier(set.engine.get());
  absl::Status status = set.engine->Run(request);
  if (!status.ok()) return status;
  if (way != nullptr) way->Drain(set.id, last);
  earlier.Await();
  return status;
}

hvd_status_t CallBlockingThrowing(Call* call, const hvd_options_t* given,
                                  const CallerResults& place) {
  CallTarget set(Process::Get().sets());
  if (const hvd_status_t code = FindTarget(given, false, &call->options, &set); code != HVD_OK)
    return code;
  Request request;
  const absl::Status checked = CheckCall(*call, set->membership(), &request);
  if (!checked.ok()) return NoteName(Return(checked), request.name);
  if (request.signature.device_type != HVD_CPU) return CallOnGpu(*call, *set, place);
  request.buffers.wants_received_splits = place.received_splits != nullptr;
  const absl::Status status =
      call->kind == RequestKind::kBarrier ? RunBarrier(*set, &request) : set->engine->Run(&request);
  const hvd_status_t code = NoteName(ReturnExecuted(status), request.name);
  if (code == HVD_OK) GiveResults(&request, place);
  return code;
}

// The handle first: once submitted, the requests must not be lost for want of memory.
hvd_status_t SubmitAs(const std::shared_ptr<Pending>& pending, const ProcessSet& set,
                      const hvd_options_t& options, hvd_handle_t* handle) {
  *handle = Process::Get().handles().Add(pending);
  Pending::Tell(pending, options, *handle);
  const absl::Status status = Submit(set, pending.get());
  if (status.ok()) return HVD_OK;
  pending->Untell();
  Process::Get().handles().Remove(*handle);
  return NoteName(Return(status), pending->requests[0]->name);
}

// As long as that at most.
hvd_status_t WaitAtMost(int64_t microseconds, hvd_handle_t* handle) {
  int32_t done = 0;
  const hvd_status_t code = WaitHandleFor(*handle, microseconds, &done);
  if (code != HVD_OK || done == 0) return code;
  return WaitHandle(std::exchange(*handle, 0), Wait::kForEnd);
}

}  // namespace

std::chrono::steady_clock::time_point EndOf(int64_t microseconds) {
  return std::chrono::steady_clock::now() +
         std::chrono::microseconds(std::min(microseconds, kLongestWaitUs));
}

hvd_status_t NegativeTime() { return Fail(HVD_ERR_INVALID, "microseconds is negative"); }

hvd_status_t CallBlocking(Call&& call, const hvd_options_t* given, const CallerResults& place) {
  return Guarded([&] { return CallBlockingThrowing(&call, given, place); });
}

// Where there is no memory to go on later, it blocks until the end.
hvd_status_t CallBlockingFor(const Call& call, const hvd_options_t* given, int64_t microseconds,
                             hvd_handle_t* handle) {
  return Guarded([&]() -> hvd_status_t {
    if (handle == nullptr) return Fail(HVD_ERR_INVALID, "handle is NULL");
    *handle = 0;
    if (microseconds < 0) return NegativeTime();
    CallTarget set(Process::Get().sets());
    Call known = call;
    if (const hvd_status_t code = FindTarget(given, false, &known.options, &set); code != HVD_OK)
      return code;
    auto pending = std::make_shared<Pending>();
    if (const hvd_status_t code = StartOne(known, *set, pending.get()); code != HVD_OK) return code;
    if (IsOnGpu(*pending)) {
      const hvd_status_t code = SubmitAs(pending, *set, known.options, handle);
      return code == HVD_OK ? WaitAtMost(microseconds, handle) : code;
    }
    Request* const request = pending->requests[0].get();
    bool done = false;
    absl::Status status = set->engine->RunUntil(request, EndOf(microseconds), &done);
    if (!done) {
      try {
        *handle = Process::Get().handles().Add(pending);
        return HVD_OK;
      } catch (const std::bad_alloc&) {
        status = set->engine->Wait(request);
      }
    }
    return NoteName(ReturnExecuted(status), request->name);
  });
}

hvd_status_t CallAsync(Call call, const hvd_options_t* given, hvd_handle_t* handle) {
  return Guarded([&]() -> hvd_status_t {
    if (handle == nullptr) return Fail(HVD_ERR_INVALID, "handle is NULL");
    CallTarget set(Process::Get().sets());
    if (const hvd_status_t code = FindTarget(given, true, &call.options, &set); code != HVD_OK)
      return code;
    auto pending = std::make_shared<Pending>();
    if (const hvd_status_t code = StartOne(call, *set, pending.get()); code != HVD_OK) return code;
    return SubmitAs(pending, *set, call.options, handle);
  });
}

hvd_status_t CallGroupBlocking(GroupCall call, const hvd_options_t* given, hvd_tensor_t* results) {
  return Guarded([&]() -> hvd_status_t {
    CallTarget set(Process::Get().sets());
    if (const hvd_status_t code = FindTarget(given, false, &call.options, &set); code != HVD_OK)
      return code;
    Pending pending;
    if (const hvd_status_t code = StartGroup(call, *set, &pending); code != HVD_OK) return code;
    Engine& engine = *set->engine;
    absl::Status status;
    if (pending.requests.size() == 1 && !IsOnGpu(pending)) {
      status = engine.Run(pending.requests[0].get());
    } else {
      status = Submit(*set, &pending);
      if (!status.ok()) return NoteName(Return(status), pending.requests[0]->name);
      status = WaitFor(pending);
    }
    const hvd_status_t code = NoteName(ReturnExecuted(status), pending.requests[0]->name);
    if (code == HVD_OK && results != nullptr) GiveGroupResults(pending, results);
    return code;
  });
}

hvd_status_t CallGroupAsync(GroupCall call, const hvd_options_t* given, hvd_handle_t* handle) {
  return Guarded([&]() -> hvd_status_t {
    if (handle == nullptr) return Fail(HVD_ERR_INVALID, "handle is NULL");
    CallTarget set(Process::Get().sets());
    if (const hvd_status_t code = FindTarget(given, true, &call.options, &set); code != HVD_OK)
      return code;
    auto pending = std::make_shared<Pending>();
    if (const hvd_status_t code = StartGroup(call, *set, pending.get()); code != HVD_OK) {
      return code;
    }
    return SubmitAs(pending, *set, call.options, handle);
  });
}

}  // namespace hvd::rt
