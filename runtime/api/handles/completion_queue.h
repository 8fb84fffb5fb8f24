// SPDX-License-Identifier: Apache-2.0
// What stands behind hvd_queue_t: ends of asynchronous calls, and a descriptor that is readable
// while there are any. Thread-safe. Needs no memory when something comes.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/mutex.h"
#include "hvd/hvd.h"

namespace hvd::rt {

class Pending;

class CompletionQueue {
 public:
  static absl::StatusOr<std::unique_ptr<CompletionQueue>> Make();
  ~CompletionQueue();
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  // The ABI's name for it is its address.
  static CompletionQueue* Of(hvd_queue_t* queue) {
    return reinterpret_cast<CompletionQueue*>(queue);
  }
  hvd_queue_t* handle() { return reinterpret_cast<hvd_queue_t*>(this); }

  int fd() const { return fd_; }
  // Counts `calls` more calls that name this queue.
  void Expect(int calls);
  // One of these is over.
  void Put(const std::shared_ptr<Pending>& ended);
  // Takes what there is room for.
  size_t Take(absl::Span<hvd_completion_t> completions);
  bool idle() const;  // no call that names it is under way

 private:
  explicit CompletionQueue(int fd) : fd_(fd) {}

  const int fd_;
  mutable Mutex mutex_;
  int expected_ ABSL_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<Pending> first_ ABSL_GUARDED_BY(mutex_);
  Pending* last_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace hvd::rt
