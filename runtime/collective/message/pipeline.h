// SPDX-License-Identifier: Apache-2.0
// A large operation in chunks: while one is on its way across, the next is made ready in the host
// and an earlier one is passed on there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>

#include "runtime/collective/message/run.h"

namespace hvd::rt {

// `count` elements in chunks of about `most`, as even as can be; at least one chunk unless count is
// 0. Chunks begin at multiples of 64 elements.
class Chunks {
 public:
  Chunks(size_t count, size_t most);
  size_t size() const { return size_; }
  size_t begin(size_t chunk) const { return std::min(count_, chunk * each_); }
  size_t count(size_t chunk) const { return begin(chunk + 1) - begin(chunk); }
  size_t largest() const { return std::min(count_, each_); }

 private:
  const size_t count_;
  size_t each_ = 0;
  size_t size_ = 0;
};

struct PipelineWork {
  // Two keep the wire busy while one of them begins or ends.
  static constexpr size_t kAcross = 2;
  // A buffer that belongs to chunk k is free again for chunk k + kBuffers.
  static constexpr size_t kBuffers = kAcross + 1;

  size_t chunks = 0;
  // In the host, before and after; empty: nothing to do. They wait for other ranks of the host.
  std::function<absl::Status(size_t chunk)> before = {};
  // May give null: this rank has no part in it.
  std::function<absl::StatusOr<std::unique_ptr<MessageRun>>(size_t chunk)> across = {};
  std::function<absl::Status(size_t chunk)> after = {};
};

// Every rank works in the same order: before(k), across(k) begins, across(k - kAcross) is awaited,
// after(k - kAcross).
absl::Status RunPipeline(Waiter* waiter, const PipelineWork& work);

}  // namespace hvd::rt
