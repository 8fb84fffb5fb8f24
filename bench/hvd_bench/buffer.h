// SPDX-License-Identifier: Apache-2.0
// A tensor of elements of a type known at run time: in the program's own memory, in hvd's arena, or
// on this rank's GPU.
#pragma once

#include <cstddef>
#include <memory>
#include <stdexcept>

#include "bench/hvd_bench/values.h"

namespace bench {

// A result that is not what it must be; what() names rank, element and both values.
struct WrongValue : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The one of the GPU's streams that all tensors of the benchmark are on.
inline constexpr size_t kStream = 1;

// hvd's message as an exception, unless `status` is HVD_OK.
void ThrowIfError(hvd_status_t status);

enum class Memory { kUser, kArena, kGpu };

// One thread. Memory in the arena or on the GPU must be gone before the session ends. A buffer on a
// GPU has a copy on the host, which is written first and read last.
class Buffer {
 public:
  Buffer(const Dtype& dtype, size_t count, Memory memory);
  // Uses somebody else's memory.
  Buffer(const Dtype& dtype, size_t count, void* memory);
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  size_t count() const { return count_; }
  size_t bytes() const { return count_ * dtype_.bytes; }
  const hvd_tensor_t* tensor() const { return &tensor_; }
  // Sets each element to its value, by index.
  template <class ValueOf>
  void SetEach(ValueOf value_of) {
    for (size_t i = 0; i < count_; ++i) Store(dtype_, value_of(i), At(i));
    Send();
  }
  void SetAll(double value) {
    Fill(dtype_, value, memory_.get(), count_);
    Send();
  }
  // Throws WrongValue unless the element is `value` as the type holds it. An element on a GPU
  // counts as it is when this is first asked after it was set.
  void Expect(size_t index, double value) const;

 private:
  unsigned char* At(size_t index) const {
    return static_cast<unsigned char*>(memory_.get()) + index * dtype_.bytes;
  }
  // Between the host's copy and the GPU; nothing elsewhere.
  void Send();
  void Fetch() const;

  Dtype dtype_;
  size_t count_;
  int64_t shape_;
  std::unique_ptr<void, void (*)(void*)> memory_;  // the host sees it
  std::unique_ptr<void, void (*)(void*)> on_gpu_{nullptr, nullptr};
  mutable bool is_fetched_ = false;
  hvd_tensor_t tensor_ = HVD_TENSOR_INIT;
};

}  // namespace bench
