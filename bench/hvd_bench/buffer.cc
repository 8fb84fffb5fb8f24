// SPDX-License-Identifier: Apache-2.0
#include "bench/hvd_bench/buffer.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <string>

#include "bench/device/gpu_memory.h"
#include "hvd/hvd.hpp"

namespace bench {
namespace {

using Owner = std::unique_ptr<void, void (*)(void*)>;

// A rank's share may be empty.
size_t Room(size_t bytes) { return std::max<size_t>(1, bytes); }

Owner AllocateOnGpu(size_t bytes) {
  void* data = nullptr;
  const int device = gpu::Side::Get().device().index();
  ThrowIfError(hvd_alloc_on(Room(bytes), HVD_CUDA, device, &data));
  return Owner(data, [](void* given) { hvd_free(given); });
}

Owner Allocate(size_t bytes, Memory memory) {
  bytes = Room(bytes);
  if (memory == Memory::kArena) {
    void* data = nullptr;
    ThrowIfError(hvd_alloc(bytes, &data));
    return Owner(data, [](void* given) { hvd_free(given); });
  }
  void* const data = std::malloc(bytes);
  if (data == nullptr) throw std::bad_alloc();
  return Owner(data, std::free);
}

}  // namespace

void ThrowIfError(hvd_status_t status) {
  if (status != HVD_OK) throw hvd::Error(status, hvd_last_error());
}

Buffer::Buffer(const Dtype& dtype, size_t count, Memory memory)
    : dtype_(dtype),
      count_(count),
      shape_(static_cast<int64_t>(count)),
      memory_(Allocate(count * dtype.bytes, memory)) {
  tensor_.data = memory_.get();
  tensor_.shape = &shape_;
  tensor_.ndim = 1;
  tensor_.dtype = dtype.code;
  if (memory == Memory::kGpu) {
    on_gpu_ = AllocateOnGpu(bytes());
    tensor_.data = on_gpu_.get();
    tensor_.device_type = HVD_CUDA;
    tensor_.device_id = gpu::Side::Get().device().index();
    tensor_.stream = gpu::Side::Get().stream(kStream);
  }
  SetAll(0);  // the pages are there before the first call
}

Buffer::Buffer(const Dtype& dtype, size_t count, void* memory)
    : dtype_(dtype),
      count_(count),
      shape_(static_cast<int64_t>(count)),
      memory_(memory, [](void*) {}) {
  tensor_.data = memory;
  tensor_.shape = &shape_;
  tensor_.ndim = 1;
  tensor_.dtype = dtype.code;
}

void Buffer::Send() {
  if (on_gpu_ == nullptr) return;
  gpu::Upload(memory_.get(), static_cast<unsigned char*>(on_gpu_.get()), bytes(),
              gpu::Side::Get().stream(kStream));
  gpu::Side::Get().Await(gpu::Side::Get().stream(kStream));  // no call shall be timed with it
  is_fetched_ = false;
}

void Buffer::Fetch() const {
  if (on_gpu_ == nullptr || is_fetched_) return;
  gpu::Download(memory_.get(), static_cast<const unsigned char*>(on_gpu_.get()), bytes(),
                gpu::Side::Get().stream(kStream));
  is_fetched_ = true;
}

void Buffer::Expect(size_t index, double value) const {
  Fetch();
  unsigned char wanted[kMostBytes];
  Store(dtype_, value, wanted);  // as the type holds it
  const unsigned char* const found = At(index);
  if (std::equal(found, found + dtype_.bytes, wanted)) return;
  throw WrongValue("rank " + std::to_string(hvd::rank()) + ": element " + std::to_string(index) +
                   " of " + std::to_string(count_) + " " + dtype_.name + " is " +
                   std::to_string(Load(dtype_, found)) + ", must be " +
                   std::to_string(Load(dtype_, wanted)));
}

}  // namespace bench
