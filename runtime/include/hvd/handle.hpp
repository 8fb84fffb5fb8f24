// Collectives in flight, for hvd.hpp, which includes it: what the asynchronous calls return.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "hvd/hvd.h"
#include "hvd/types.hpp"

namespace hvd {

// A collective in flight. Until it is done, the memory given to it belongs to hvd: so the
// destructor waits (and swallows the error; call wait() to see it). Move-only; one thread at a
// time.
class [[nodiscard]] Handle {
 public:
  Handle() = default;
  explicit Handle(hvd_handle_t handle) : handle_(handle) {}
  Handle(Handle&& other) noexcept : handle_(std::exchange(other.handle_, 0)) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) {
      finish();
      handle_ = std::exchange(other.handle_, 0);
    }
    return *this;
  }
  ~Handle() { finish(); }

  // True while there is something to wait for.
  bool valid() const { return handle_ != 0; }
  // True when wait() would not block; of an empty handle too.
  bool poll() const {
    int32_t done = 1;
    if (valid()) internal::ThrowIfError(hvd_poll(handle_, &done));
    return done != 0;
  }
  // Returns when the result is there, or throws what went wrong. The handle is empty afterwards.
  void wait() {
    if (valid()) internal::ThrowIfError(hvd_wait(std::exchange(handle_, 0)));
  }

 private:
  void finish() noexcept {
    if (valid()) hvd_wait(std::exchange(handle_, 0));
  }

  hvd_handle_t handle_ = 0;
};

namespace internal {

// Owns what the library allocated for an allgather.
class Result {
 public:
  Result() = default;
  Result(const Result&) = delete;
  Result& operator=(const Result&) = delete;
  ~Result() { hvd_free_result(&tensor_); }
  hvd_tensor_t* get() { return &tensor_; }

  template <class T>
  std::vector<T> Copy() const {
    size_t count = 1;
    for (int32_t i = 0; i < tensor_.ndim; ++i) count *= static_cast<size_t>(tensor_.shape[i]);
    const T* data = static_cast<const T*>(tensor_.data);
    return count == 0 ? std::vector<T>() : std::vector<T>(data, data + count);
  }

 private:
  hvd_tensor_t tensor_ = HVD_TENSOR_INIT;
};

}  // namespace internal

// An allgather in flight; like Handle, but wait() returns the gathered elements.
template <class T>
class [[nodiscard]] GatherHandle {
 public:
  GatherHandle() = default;
  explicit GatherHandle(hvd_handle_t handle) : handle_(handle) {}
  GatherHandle(GatherHandle&& other) noexcept : handle_(std::exchange(other.handle_, 0)) {}
  GatherHandle& operator=(GatherHandle&& other) noexcept {
    if (this != &other) {
      finish();
      handle_ = std::exchange(other.handle_, 0);
    }
    return *this;
  }
  ~GatherHandle() { finish(); }

  bool valid() const { return handle_ != 0; }
  bool poll() const {
    int32_t done = 1;
    if (valid()) internal::ThrowIfError(hvd_poll(handle_, &done));
    return done != 0;
  }
  // The ranks' elements, in rank order; empty for an empty handle.
  std::vector<T> wait() {
    internal::Result result;
    if (!valid()) return {};
    internal::ThrowIfError(hvd_wait_result(std::exchange(handle_, 0), result.get()));
    return result.Copy<T>();
  }

 private:
  void finish() noexcept {
    internal::Result unwanted;
    if (valid()) hvd_wait_result(std::exchange(handle_, 0), unwanted.get());
  }

  hvd_handle_t handle_ = 0;
};

}  // namespace hvd
