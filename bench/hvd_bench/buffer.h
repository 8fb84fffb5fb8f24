// A tensor of elements of a type known at run time, in the program's own memory or in hvd's arena.
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

// hvd's message as an exception, unless `status` is HVD_OK.
void ThrowIfError(hvd_status_t status);

enum class Memory { kUser, kArena };

// One thread. Memory in the arena must be gone before the session ends.
class Buffer {
 public:
  Buffer(const Dtype& dtype, size_t count, Memory memory);
  // Of somebody else's memory.
  Buffer(const Dtype& dtype, size_t count, void* memory);
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  size_t count() const { return count_; }
  size_t bytes() const { return count_ * dtype_.bytes; }
  const hvd_tensor_t* tensor() const { return &tensor_; }
  void Set(size_t index, double value) { Store(dtype_, value, At(index)); }
  void SetAll(double value) { Fill(dtype_, value, tensor_.data, count_); }
  // Throws WrongValue unless the element is `value` as the type holds it.
  void Expect(size_t index, double value) const;

 private:
  unsigned char* At(size_t index) const {
    return static_cast<unsigned char*>(tensor_.data) + index * dtype_.bytes;
  }

  Dtype dtype_;
  size_t count_;
  int64_t shape_;
  std::unique_ptr<void, void (*)(void*)> memory_;
  hvd_tensor_t tensor_ = HVD_TENSOR_INIT;
};

}  // namespace bench
