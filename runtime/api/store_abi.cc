// SPDX-License-Identifier: Apache-2.0
// The C ABI of the job's key-value store.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "hvd/hvd.h"
#include "runtime/api/process/process.h"
#include "runtime/api/store_call.h"
#include "runtime/errors/errors.h"
#include "store/store_limits.h"

namespace hvd::rt {
namespace {

constexpr double kLongestTimeoutS = 1e9;  // longer ones last until the job ends

hvd_status_t Wrong(StoreVerb verb, const std::string& what) {
  return Fail(HVD_ERR_INVALID, std::string(NameOf(verb)) + ": " + what);
}

// OK when this process may ask at all.
hvd_status_t MayAsk() {
  Process::Get();  // from now on a fork is noticed
  return Process::forked() ? NotInitialized() : HVD_OK;
}

hvd_status_t ReadKey(const char* key, StoreRequest* request) {
  if (key == nullptr) return Wrong(request->verb, "key is NULL");
  request->keys = {key};
  return MayAsk();
}

hvd_status_t ReadKeys(const char* const* keys, int32_t count, StoreRequest* request) {
  if (count < 0) return Wrong(request->verb, "count is negative");
  if (count > 0 && keys == nullptr) return Wrong(request->verb, "keys is NULL");
  for (int32_t i = 0; i < count; ++i) {
    if (keys[i] == nullptr) return Wrong(request->verb, "keys[" + std::to_string(i) + "] is NULL");
    request->keys.emplace_back(keys[i]);
  }
  return MayAsk();
}

hvd_status_t ReadTimeout(double timeout_s, StoreRequest* request) {
  if (std::isnan(timeout_s) || timeout_s < 0) {
    return Wrong(request->verb, "timeout_s is negative, or no number");
  }
  const bool forever = timeout_s >= kLongestTimeoutS;
  request->timeout_us = forever ? kStoreForever : static_cast<int64_t>(std::ceil(timeout_s * 1e6));
  return HVD_OK;
}

hvd_status_t ReadValue(const void* data, size_t bytes, StoreRequest* request) {
  if (data == nullptr && bytes > 0) return Wrong(request->verb, "the value is NULL");
  if (const hvd_status_t code = ReturnOfStore(CheckStoreValue(*request, bytes))) return code;
  const char* from = data == nullptr ? "" : static_cast<const char*>(data);
  request->value = std::make_shared<const std::string>(from, bytes);
  return HVD_OK;
}

hvd_status_t GiveValue(const StoreValue& from, hvd_store_value_t* value) {
  if (value == nullptr || from == nullptr) return HVD_OK;
  value->data = std::malloc(from->empty() ? 1 : from->size());
  if (value->data == nullptr) return Fail(HVD_ERR_INTERNAL, "out of memory for a store's value");
  value->bytes = from->size();
  std::memcpy(value->data, from->data(), from->size());
  return HVD_OK;
}

// Asks, waits, and gives the answer's number.
hvd_status_t AskNumber(const StoreRequest& request, int64_t* number) {
  const absl::StatusOr<StoreAnswer> answer = AskStore(request);
  if (answer.ok() && number != nullptr) *number = answer->number;
  return ReturnOfStore(answer.status());
}

hvd_status_t AskValue(const StoreRequest& request, hvd_store_value_t* value) {
  const absl::StatusOr<StoreAnswer> answer = AskStore(request);
  return answer.ok() ? GiveValue(answer->value, value) : ReturnOfStore(answer.status());
}

hvd_status_t BeginCall(const StoreRequest& request, hvd_store_call_t** call) {
  if (call == nullptr) return Wrong(request.verb, "call is NULL");
  *call = nullptr;
  auto begun = hvd_store_call_t::Begin(request);
  if (begun.ok()) *call = begun->release();
  return ReturnOfStore(begun.status());
}

StoreRequest RequestOf(StoreVerb verb) {
  StoreRequest request;
  request.verb = verb;
  return request;
}

hvd_status_t ReadGet(const char* key, double timeout_s, StoreRequest* request) {
  const hvd_status_t code = ReadKey(key, request);
  return code != HVD_OK ? code : ReadTimeout(timeout_s, request);
}

}  // namespace
}  // namespace hvd::rt

using hvd::StoreRequest;
using hvd::StoreVerb;
using hvd::rt::Guarded;
using hvd::rt::RequestOf;

extern "C" {

hvd_status_t hvd_store_set(const char* key, const void* value, size_t bytes) {
  return Guarded([&]() -> hvd_status_t {
    StoreRequest request = RequestOf(StoreVerb::kSet);
    if (const hvd_status_t code = hvd::rt::ReadKey(key, &request)) return code;
    if (const hvd_status_t code = hvd::rt::ReadValue(value, bytes, &request)) return code;
    return hvd::rt::AskNumber(request, nullptr);
  });
}

hvd_status_t hvd_store_get(const char* key, double timeout_s, hvd_store_value_t* value) {
  return Guarded([&]() -> hvd_status_t {
    StoreRequest request = RequestOf(StoreVerb::kGet);
    if (value == nullptr) return hvd::rt::Wrong(request.verb, "value is NULL");
    *value = {};
    if (const hvd_status_t code = hvd::rt::ReadGet(key, timeout_s, &request)) return code;
    return hvd::rt::AskValue(request, value);
  });
}

hvd_status_t hvd_store_add(const char* key, int64_t delta, int64_t* sum) {
  return Guarded([&]() -> hvd_status_t {
    StoreRequest request = RequestOf(StoreVerb::kAdd);
    request.delta = delta;
    if (const hvd_status_t code = hvd::rt::ReadKey(key, &request)) return code;
    return hvd::rt::AskNumber(request, sum);
  });
}

hvd_status_t hvd_store_compare_set(const char* key, const hvd_store_value_t* expected,
                                   const hvd_store_value_t* desired, hvd_store_value_t* now) {
  return Guarded([&]() -> hvd_status_t {
    StoreRequest request = RequestOf(StoreVerb::kCompareSet);
    if (now != nullptr) *now = {};
    if (desired == nullptr) return hvd::rt::Wrong(request.verb, "desired is NULL");
    if (const hvd_status_t code = hvd::rt::ReadKey(key, &request)) return code;
    const hvd_store_value_t none = {nullptr, 0};
    const hvd_store_value_t& asked = expected == nullptr ? none : *expected;
    if (const hvd_status_t code = hvd::rt::ReadValue(asked.data, asked.bytes, &request))
      return code;
    request.expected = *request.value;
    if (const hvd_status_t code = hvd::rt::ReadValue(desired->data, desired->bytes, &request)) {
      return code;
    }
    return hvd::rt::AskValue(request, now);
  });
}

hvd_status_t hvd_store_delete(const char* key, int32_t* existed) {
  return Guarded([&]() -> hvd_status_t {
    StoreRequest request = RequestOf(StoreVerb::kDelete);
    if (const hvd_status_t code = hvd::rt::ReadKey(key, &request)) return code;
    int64_t number = 0;
    const hvd_status_t code = hvd::rt::AskNumber(request, &number);
    if (code == HVD_OK && existed != nullptr) *existed = static_cast<int32_t>(number);
    return code;
  });
}

hvd_status_t hvd_store_count(int64_t* count) {
  return Guarded([&]() -> hvd_status_t {
    const StoreRequest request = RequestOf(StoreVerb::kCount);
    if (count == nullptr) return hvd::rt::Wrong(request.verb, "count is NULL");
    if (const hvd_status_t code = hvd::rt::MayAsk()) return code;
    return hvd::rt::AskNumber(request, count);
  });
}

hvd_status_t hvd_store_wait(const char* const* keys, int32_t count, double timeout_s) {
  return Guarded([&]() -> hvd_status_t {
    StoreRequest request = RequestOf(StoreVerb::kWait);
    if (const hvd_status_t code = hvd::rt::ReadKeys(keys, count, &request)) return code;
    if (const hvd_status_t code = hvd::rt::ReadTimeout(timeout_s, &request)) return code;
    return hvd::rt::AskNumber(request, nullptr);
  });
}

void hvd_store_free(hvd_store_value_t* value) {
  if (value == nullptr) return;
  std::free(value->data);
  *value = {};
}

hvd_status_t hvd_store_begin_get(const char* key, double timeout_s, hvd_store_call_t** call) {
  return Guarded([&]() -> hvd_status_t {
    StoreRequest request = RequestOf(StoreVerb::kGet);
    if (const hvd_status_t code = hvd::rt::ReadGet(key, timeout_s, &request)) return code;
    return hvd::rt::BeginCall(request, call);
  });
}

hvd_status_t hvd_store_begin_wait(const char* const* keys, int32_t count, double timeout_s,
                                  hvd_store_call_t** call) {
  return Guarded([&]() -> hvd_status_t {
    StoreRequest request = RequestOf(StoreVerb::kWait);
    if (const hvd_status_t code = hvd::rt::ReadKeys(keys, count, &request)) return code;
    if (const hvd_status_t code = hvd::rt::ReadTimeout(timeout_s, &request)) return code;
    return hvd::rt::BeginCall(request, call);
  });
}

hvd_status_t hvd_store_wait_for(hvd_store_call_t* call, int64_t microseconds, int32_t* done) {
  return Guarded([&]() -> hvd_status_t {
    if (call == nullptr || done == nullptr || microseconds < 0) {
      return hvd::rt::Fail(HVD_ERR_INVALID,
                           "hvd_store_wait_for: call or done is NULL, or microseconds is negative");
    }
    if (const hvd_status_t code = hvd::rt::MayAsk()) return code;
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(microseconds);
    *done = call->Await(until) ? 1 : 0;
    return HVD_OK;
  });
}

hvd_status_t hvd_store_end(hvd_store_call_t* call, hvd_store_value_t* value) {
  return Guarded([&]() -> hvd_status_t {
    if (call == nullptr) return hvd::rt::Fail(HVD_ERR_INVALID, "hvd_store_end: call is NULL");
    if (value != nullptr) *value = {};
    // Its connection is the parent's.
    if (const hvd_status_t code = hvd::rt::MayAsk()) return code;
    const std::unique_ptr<hvd_store_call_t> ended(call);
    const absl::Status status = ended->status();
    return status.ok() ? hvd::rt::GiveValue(ended->answer().value, value)
                       : hvd::rt::ReturnOfStore(status);
  });
}

}  // extern "C"
