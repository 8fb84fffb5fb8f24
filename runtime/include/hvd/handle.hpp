// SPDX-License-Identifier: Apache-2.0
// Collectives in flight, for hvd.hpp, which includes it: what the asynchronous calls return.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "hvd/hvd.h"
#include "hvd/types.hpp"

namespace hvd {

namespace internal {

// The part that all handles have in common.
class Flight {
 public:
  Flight() = default;
  explicit Flight(hvd_handle_t handle) : handle_(handle) {}
  Flight(Flight&& other) noexcept : handle_(other.Take()) {}
  Flight& operator=(Flight&& other) noexcept {
    if (this != &other) {
      Finish();
      handle_ = other.Take();
    }
    return *this;
  }

  // True while there is something to wait for.
  bool valid() const { return handle_ != 0; }
  // True when wait() would not block; of an empty handle too.
  bool poll() const {
    int32_t done = 1;
    if (valid()) ThrowIfError(hvd_poll(handle_, &done));
    return done != 0;
  }

 protected:
  ~Flight() { Finish(); }
  hvd_handle_t Take() noexcept { return std::exchange(handle_, 0); }

 private:
  // If an exception breaks a call off here, other ranks may never bring their part of it: they must
  // hear that this one has left, and what is in flight ends with that.
  void Finish() noexcept {
    if (!valid()) return;
    int32_t done = 1;
    if (unwinding_.now() && hvd_poll(handle_, &done) == HVD_OK && done == 0) hvd_shutdown();
    hvd_wait(Take());
  }

  hvd_handle_t handle_ = 0;
  Unwinding unwinding_;  // of this object's own scope: not moved
};

}  // namespace internal

// A collective in flight. Until it is done, the memory given to it belongs to hvd: so the
// destructor waits (and swallows the error; call wait() to see it). When it is an exception that
// leaves the scope, and the collective is not done, this rank leaves the job, as at the end of a
// Session. Move-only; one thread at a time.
class [[nodiscard]] Handle : public internal::Flight {
 public:
  using Flight::Flight;
  // Returns when the result is there, or throws what went wrong. The handle is empty afterwards.
  void wait() {
    if (valid()) internal::ThrowIfError(hvd_wait(Take()));
  }
};

// A join in flight; like Handle, but wait() returns the rank that joined last.
class [[nodiscard]] JoinHandle : public internal::Flight {
 public:
  using Flight::Flight;
  // -1 of an empty handle.
  int wait() {
    int32_t last = -1;
    if (valid()) internal::ThrowIfError(hvd_wait_join(Take(), &last));
    return last;
  }
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

// An allgather or a reduce-scatter in flight; like Handle, but wait() returns the elements.
template <class T>
class [[nodiscard]] GatherHandle : public internal::Flight {
 public:
  using Flight::Flight;
  // Returns the elements, for an allgather the ranks' in rank order; nothing for an empty handle.
  std::vector<T> wait() {
    internal::Result result;
    if (!valid()) return {};
    internal::ThrowIfError(hvd_wait_result(Take(), result.get()));
    return result.Copy<T>();
  }
};

// The result of an alltoall: the ranks' rows in rank order, and how many came from each.
template <class T>
struct Received {
  std::vector<T> data;
  std::vector<int64_t> splits;
};

// An alltoall in flight; like Handle, but wait() returns what it brought.
template <class T>
class [[nodiscard]] AlltoallHandle : public internal::Flight {
 public:
  AlltoallHandle() = default;
  AlltoallHandle(hvd_handle_t handle, size_t ranks) : Flight(handle), ranks_(ranks) {}
  // Nothing of an empty handle.
  Received<T> wait() {
    internal::Result result;
    Received<T> received;
    if (!valid()) return received;
    received.splits.resize(ranks_);
    internal::ThrowIfError(hvd_wait_alltoall(Take(), result.get(), received.splits.data()));
    received.data = result.Copy<T>();
    return received;
  }

 private:
  size_t ranks_ = 0;  // of the process set
};

}  // namespace hvd
