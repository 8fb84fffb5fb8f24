#include "runtime/api/calls.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "runtime/api/check/check_tensor.h"
#include "runtime/api/process.h"

namespace hvd {
namespace {

// The clock must not wrap: ten years.
constexpr int64_t kLongestWaitUs = int64_t{10} * 365 * 86400 * 1000000;

// The caller's options and the set that they name, of which this rank is a member.
hvd_status_t FindTarget(const hvd_options_t* given, bool asynchronous, hvd_options_t* options,
                        CallTarget* target) {
  if (absl::Status read = ReadOptions(given, options); !read.ok()) return Return(read);
  if (absl::Status told = CheckTelling(*options, asynchronous); !told.ok()) return Return(told);
  const Process& process = Process::Get();
  if (Process::forked()) return NotInitialized();
  const absl::Status chosen = target->Choose(options->process_set);
  if (chosen.ok()) return HVD_OK;
  // Every rank is a member of the global one: it is missing before hvd_init and after hvd_shutdown.
  const bool global = options->process_set == HVD_GLOBAL_PROCESS_SET;
  return global || process.engine() == nullptr ? NotInitialized() : Return(chosen);
}

void GiveTensor(void** data, const std::vector<int64_t>& shape, uint32_t dtype,
                hvd_tensor_t* result) {
  *result = HVD_TENSOR_INIT;
  result->dtype = static_cast<int32_t>(dtype);
  if (*data == nullptr) return;
  auto* copy = static_cast<int64_t*>(malloc(sizeof(int64_t) * std::max<size_t>(shape.size(), 1)));
  if (copy == nullptr) throw std::bad_alloc();
  std::copy(shape.begin(), shape.end(), copy);
  result->shape = copy;
  result->ndim = static_cast<int32_t>(shape.size());
  result->data = *data;
  *data = nullptr;
}

void GiveResults(Request* request, const CallerResults& place) {
  if (place.result != nullptr) {
    GiveTensor(&request->result.owned, request->result.shape, request->signature.dtype,
               place.result);
  }
  if (place.received_splits != nullptr) {
    std::copy(request->result.received_splits.begin(), request->result.received_splits.end(),
              place.received_splits);
  }
}

size_t TensorsOf(const Pending& pending) {
  size_t count = 0;
  for (const auto& request : pending.requests)
    count += std::max<size_t>(request->buffers.parts.size(), 1);
  return count;
}

void GiveGroupResults(const Pending& pending, hvd_tensor_t* results) {
  for (const auto& request : pending.requests) {
    for (RequestPart& part : request->buffers.parts) {
      GiveTensor(&part.owned_result, part.result_shape, request->signature.dtype,
                 &results[part.position]);
    }
  }
}

absl::Status WaitFor(const Pending& pending) {
  const std::shared_ptr<Engine> engine = pending.engine.lock();
  absl::Status status;
  for (const auto& request : pending.requests) {
    // After a shutdown every request is done.
    const bool done = request->done.load(std::memory_order_acquire) || engine == nullptr;
    absl::Status ended = done ? request->result.status : engine->Wait(request.get());
    if (status.ok()) status = std::move(ended);
  }
  return status;
}

hvd_status_t StartGroup(const GroupCall& call, const ProcessSet& set, Pending* pending) {
  auto requests = CheckGroup(call, set.membership());
  if (!requests.ok()) return Return(requests.status());
  pending->requests = *std::move(requests);
  pending->engine = set.engine;
  return HVD_OK;
}

hvd_status_t UnknownHandle(hvd_handle_t handle) {
  return Fail(HVD_ERR_INVALID,
              "handle " + std::to_string(handle) +
                  " is unknown; it may have been waited for, or released, already");
}

// Why this wait is not for what the handle stands for; empty: it is.
std::string WhyNot(Wait wait, const Signature& signature) {
  if (wait == Wait::kForEnd) return "";
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

// Of several threads that wait for one handle, the first to take it away has the results.
hvd_status_t EndWait(hvd_handle_t handle, const Pending& pending) {
  const absl::Status status = WaitFor(pending);
  if (!Process::Get().handles().Remove(handle)) return UnknownHandle(handle);
  return NoteName(ReturnExecuted(status), pending.requests[0]->name);
}

hvd_status_t CallBlockingThrowing(Call* call, const hvd_options_t* given,
                                  const CallerResults& place) {
  CallTarget set(Process::Get().sets());
  if (const hvd_status_t code = FindTarget(given, false, &call->options, &set); code != HVD_OK)
    return code;
  Request request;
  const absl::Status checked = CheckCall(*call, set->membership(), &request);
  if (!checked.ok()) return NoteName(Return(checked), request.name);
  request.buffers.wants_received_splits = place.received_splits != nullptr;
  if (call->kind == RequestKind::kBarrier) set->engine->Drain();
  const hvd_status_t code = NoteName(ReturnExecuted(set->engine->Run(&request)), request.name);
  if (code == HVD_OK) GiveResults(&request, place);
  return code;
}

// The handle first: once submitted, the requests must not be lost for want of memory.
template <class Submit>
hvd_status_t SubmitAs(std::shared_ptr<Pending> pending, const hvd_options_t& options,
                      hvd_handle_t* handle, Submit submit) {
  *handle = Process::Get().handles().Add(pending);
  Pending::Tell(pending, options, *handle);
  const absl::Status status = submit(*pending);
  if (status.ok()) return HVD_OK;
  pending->Untell();
  Process::Get().handles().Remove(*handle);
  return NoteName(Return(status), pending->requests[0]->name);
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
    pending->engine = set->engine;
    pending->requests.push_back(std::make_unique<Request>());
    Request* const request = pending->requests[0].get();
    const absl::Status checked = CheckCall(known, set->membership(), request);
    if (!checked.ok()) return NoteName(Return(checked), request->name);
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
    pending->engine = set->engine;
    pending->requests.push_back(std::make_unique<Request>());
    const absl::Status checked = CheckCall(call, set->membership(), pending->requests[0].get());
    if (!checked.ok()) return NoteName(Return(checked), pending->requests[0]->name);
    return SubmitAs(std::move(pending), call.options, handle, [&](const Pending& submitted) {
      return set->engine->Submit(submitted.requests[0].get());
    });
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
    if (pending.requests.size() == 1) {
      status = engine.Run(pending.requests[0].get());
    } else {
      status = engine.SubmitGroup(pending.requests);
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
    return SubmitAs(std::move(pending), call.options, handle, [&](const Pending& submitted) {
      return set->engine->SubmitGroup(submitted.requests);
    });
  });
}

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
    const std::shared_ptr<Engine> engine = pending->engine.lock();
    for (const auto& request : pending->requests) {
      const bool is_done = request->done.load(std::memory_order_acquire);
      if (!is_done && engine != nullptr && !engine->Poll(request.get())) *done = 0;
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
    const std::shared_ptr<Engine> engine = pending->engine.lock();
    for (const auto& request : pending->requests) {
      const bool is_done = request->done.load(std::memory_order_acquire);
      if (!is_done && engine != nullptr && !engine->WaitUntil(request.get(), end)) *done = 0;
    }
    return HVD_OK;
  });
}

hvd_status_t ReleaseHandle(hvd_handle_t handle) {
  return Guarded([&]() -> hvd_status_t {
    if (Process::forked()) return NotInitialized();
    return Process::Get().handles().Release(handle) ? HVD_OK : UnknownHandle(handle);
  });
}

}  // namespace hvd
