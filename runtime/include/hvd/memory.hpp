// SPDX-License-Identifier: Apache-2.0
// Memory that all ranks of a host see, for hvd.hpp, which includes it: tensors in it are reduced
// where they lie, and fetched from there, without copies in between.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "hvd/hvd.h"
#include "hvd/types.hpp"

namespace hvd {

// `count` elements. They are zero or what was there before, not constructed: plain data only. The
// memory is valid as long as the Buffer lives, in any number of sessions. Move-only.
//
//   hvd::Buffer<float> weights(1 << 20);
//   hvd::allreduce(weights.data(), weights.size());
template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable<T>::value && !std::is_const<T>::value,
                "a Buffer holds plain data, to be written");

 public:
  Buffer() = default;
  explicit Buffer(size_t count) : size_(count) {
    void* memory = nullptr;
    const bool possible = count <= SIZE_MAX / sizeof(T);
    internal::ThrowIfError(hvd_alloc(possible ? count * sizeof(T) : SIZE_MAX, &memory));
    data_ = static_cast<T*>(memory);
  }
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Buffer() { hvd_free(data_); }

  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

// How a model's gradients are reduced.
struct GradientOptions {
  std::string name = {};  // empty: by the order in which the ranks make their Gradients
  Op op = Op::kAverage;
  size_t chunk_bytes = 0;  // of gradients that travel together; 0: chosen
  // As in Options.
  int process_set = HVD_GLOBAL_PROCESS_SET;
  double prescale = 1;
  double postscale = 1;
  Compression compression = Compression::kNone;
  bool average_over_contributors = false;
  bool refuse_joined = false;
  std::string contents = {};
};

// A model's gradients, one after the other in memory that all ranks of the host see, reduced in
// chunks as they become ready. All ranks make them with the same counts.
//
//   hvd::Gradients<float> gradients({1000, 10});  // elements of each
//   for (;;) {
//     // back-propagation writes gradients[i] and says so, in any order
//     gradients.ready(1);
//     gradients.ready(0);
//     gradients.wait();  // all are averages now, on every rank
//   }
template <class T>
class Gradients {
 public:
  explicit Gradients(const std::vector<size_t>& counts, const GradientOptions& options = {}) {
    const std::vector<int64_t> elements(counts.begin(), counts.end());
    const Options all = {options.name,
                         options.process_set,
                         options.op,
                         options.prescale,
                         options.postscale,
                         options.compression,
                         options.average_over_contributors,
                         options.refuse_joined,
                         options.contents};
    const hvd_options_t reduction = internal::MakeOptions(all);
    hvd_bucket_options_t bucket = HVD_BUCKET_OPTIONS_INIT;
    bucket.chunk_bytes = options.chunk_bytes;
    bucket.reduction = &reduction;
    bucket.dtype = internal::DtypeOf<T>();
    internal::ThrowIfError(hvd_bucket_create(elements.data(), static_cast<int32_t>(elements.size()),
                                             &bucket, &bucket_));
    for (size_t i = 0; i < counts.size(); ++i) {
      void* data = nullptr;
      internal::ThrowIfError(hvd_bucket_view(bucket_, static_cast<int32_t>(i), &data));
      views_.push_back(static_cast<T*>(data));
    }
  }
  Gradients(Gradients&& other) noexcept
      : bucket_(std::exchange(other.bucket_, nullptr)),
        views_(std::move(other.views_)),
        in_step_(other.in_step_.exchange(false)) {}
  Gradients& operator=(Gradients&& other) noexcept {
    std::swap(bucket_, other.bucket_);
    std::swap(views_, other.views_);
    in_step_ = other.in_step_.exchange(in_step_);
    return *this;
  }
  // Waits for chunks under way. When it is an exception that leaves the scope, in the middle of a
  // step (after the first ready(), before wait() returns), this rank leaves the job instead, as at
  // the end of a Session: the others may never come to those chunks.
  ~Gradients() {
    if (in_step_ && unwinding_.now()) hvd_shutdown();
    hvd_bucket_destroy(bucket_);
  }

  size_t size() const { return views_.size(); }
  // Where gradient `i` lies: always the same place.
  T* operator[](size_t i) { return views_[i]; }
  const T* operator[](size_t i) const { return views_[i]; }

  // Gradient `i` is written; until wait() returns, it is hvd's. Any thread.
  void ready(size_t i) {
    if (!in_step_.load(std::memory_order_relaxed)) in_step_ = true;
    internal::ThrowIfError(hvd_bucket_ready(bucket_, static_cast<int32_t>(i)));
  }
  // Copies `count` values, of T or another float type (then rounded), into gradient `i` and makes
  // it ready.
  template <class U>
  void put(size_t i, const U* values, size_t count) {
    if (!in_step_.load(std::memory_order_relaxed)) in_step_ = true;
    const internal::Tensor<U> source(values, count);
    internal::ThrowIfError(hvd_bucket_put(bucket_, static_cast<int32_t>(i), source.get()));
  }
  // Returns when gradient `i` is reduced, which ends no step. Throws HVD_ERR_INVALID, naming them,
  // when it or others that travel with it are not ready. Any thread.
  void wait(size_t i) {
    int32_t done = 0;
    while (done == 0) {
      internal::ThrowIfError(
          hvd_bucket_wait_tensor(bucket_, static_cast<int32_t>(i), INT64_MAX, &done));
    }
  }
  // Whether wait() would return at once, after so long at most.
  bool wait_for(std::chrono::microseconds time) {
    int32_t done = 0;
    internal::ThrowIfError(hvd_bucket_wait_for(bucket_, time.count(), &done));
    return done != 0;
  }
  // Gives up a step that has begun: see hvd_bucket_reset.
  void reset() {
    const hvd_status_t status = hvd_bucket_reset(bucket_);
    in_step_ = false;
    internal::ThrowIfError(status);
  }
  // Returns when all are reduced; the next step may begin. Throws HVD_ERR_INVALID, naming them,
  // when some are not ready.
  void wait() {
    const hvd_status_t status = hvd_bucket_wait(bucket_);
    if (status != HVD_ERR_INVALID) in_step_ = false;
    internal::ThrowIfError(status);
  }

 private:
  hvd_bucket_t* bucket_ = nullptr;
  std::vector<T*> views_;
  std::atomic<bool> in_step_{false};  // chunks may be under way; set by any thread
  internal::Unwinding unwinding_;     // of this object's own scope: not moved
};

}  // namespace hvd
