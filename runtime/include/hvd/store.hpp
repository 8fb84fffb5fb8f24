// SPDX-License-Identifier: Apache-2.0
// The job's key-value store, for hvd.hpp, which includes it: for small agreements of a program's
// own. It needs no init(); limits, threads and errors are as hvd.h says.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "hvd/hvd.h"
#include "hvd/types.hpp"

namespace hvd {
namespace store {

using Timeout = std::chrono::duration<double>;
// Until the job ends.
inline constexpr Timeout kForever{std::numeric_limits<double>::infinity()};

namespace internal {

// A value that the library gave, as a string.
class Got {
 public:
  Got() = default;
  ~Got() { hvd_store_free(&value_); }
  Got(const Got&) = delete;
  Got& operator=(const Got&) = delete;
  hvd_store_value_t* value() { return &value_; }
  std::string bytes() const {
    return value_.data == nullptr ? std::string()
                                  : std::string(static_cast<char*>(value_.data), value_.bytes);
  }

 private:
  hvd_store_value_t value_ = {nullptr, 0};
};

// The library only reads it.
inline hvd_store_value_t ValueOf(const std::string& bytes) {
  return {const_cast<char*>(bytes.data()), bytes.size()};
}

}  // namespace internal

//   if (hvd::rank() == 0) hvd::store::set("run", id);
//   const std::string run = hvd::store::get("run", std::chrono::seconds(30));
inline void set(const std::string& key, const std::string& value) {
  hvd::internal::ThrowIfError(hvd_store_set(key.c_str(), value.data(), value.size()));
}

// Waits until the key is there. Throws HVD_ERR_TIMEOUT.
inline std::string get(const std::string& key, Timeout timeout) {
  internal::Got got;
  hvd::internal::ThrowIfError(hvd_store_get(key.c_str(), timeout.count(), got.value()));
  return got.bytes();
}

// Returns the sum.
inline int64_t add(const std::string& key, int64_t delta) {
  int64_t sum = 0;
  hvd::internal::ThrowIfError(hvd_store_add(key.c_str(), delta, &sum));
  return sum;
}

// Sets the key to `desired` if it is `expected`, where a key that is not there counts as empty.
// Returns what is there afterwards.
inline std::string compare_set(const std::string& key, const std::string& expected,
                               const std::string& desired) {
  const hvd_store_value_t from = internal::ValueOf(expected);
  const hvd_store_value_t to = internal::ValueOf(desired);
  internal::Got now;
  hvd::internal::ThrowIfError(hvd_store_compare_set(key.c_str(), &from, &to, now.value()));
  return now.bytes();
}

// Whether it was there.
inline bool erase(const std::string& key) {
  int32_t existed = 0;
  hvd::internal::ThrowIfError(hvd_store_delete(key.c_str(), &existed));
  return existed == 1;
}

inline int64_t count() {
  int64_t keys = 0;
  hvd::internal::ThrowIfError(hvd_store_count(&keys));
  return keys;
}

// Waits until all keys are there at one time. Throws HVD_ERR_TIMEOUT.
inline void wait(const std::vector<std::string>& keys, Timeout timeout) {
  std::vector<const char*> names;
  for (const std::string& key : keys) names.push_back(key.c_str());
  hvd::internal::ThrowIfError(
      hvd_store_wait(names.data(), static_cast<int32_t>(names.size()), timeout.count()));
}

}  // namespace store
}  // namespace hvd
