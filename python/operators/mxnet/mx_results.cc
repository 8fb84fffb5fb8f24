// SPDX-License-Identifier: Apache-2.0
#include "python/operators/mxnet/mx_results.h"

#include <chrono>
#include <exception>
#include <utility>

namespace hvd::mx {

Results::Results(size_t count) : arrays_(count, nullptr) {}

Results::~Results() {
  for (NDArrayHandle array : arrays_) {
    if (array != nullptr) (void)mxnet.MXNDArrayFree(array);
  }
}

void* Results::Make(const std::vector<int64_t>& shape, const Array& input, size_t index) try {
  Array array(shape, input.type(), input);
  const hvd_tensor_t tensor = array.Describe(true);
  arrays_[index] = array.Release();
  // libhvd wants a place for nothing, too.
  return tensor.data != nullptr ? tensor.data : this;
} catch (const std::exception&) {
  return nullptr;
}

int64_t* Results::MakeReceived(size_t members) {
  received_.resize(members);
  return received_.data();
}

void Results::End(const std::string& error) {
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    error_ = error;
    ended_ = true;
  }
  ended_condition_.notify_all();
}

bool Results::WaitFor(int64_t microseconds) {
  std::unique_lock lock(mutex_);
  return ended_condition_.wait_for(lock, std::chrono::microseconds(microseconds),
                                   [this] { return ended_; });
}

NDArrayHandle Results::Take(size_t index) { return std::exchange(arrays_[index], nullptr); }

}  // namespace hvd::mx
