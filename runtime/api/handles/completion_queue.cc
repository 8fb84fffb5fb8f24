// SPDX-License-Identifier: Apache-2.0
#include "runtime/api/handles/completion_queue.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "runtime/api/handles/pending.h"
#include "runtime/errors/errors.h"

namespace hvd::rt {

absl::StatusOr<std::unique_ptr<CompletionQueue>> CompletionQueue::Make() {
  const int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (fd >= 0) return std::unique_ptr<CompletionQueue>(new CompletionQueue(fd));
  return absl::InternalError(std::string("hvd_queue_create: no descriptor for it: ") +
                             strerror(errno) + "; see ulimit -n");
}

// One after the other: a long list must not end in as many calls.
CompletionQueue::~CompletionQueue() {
  while (first_ != nullptr) first_ = std::exchange(first_->next_, nullptr);
  close(fd_);
}

void CompletionQueue::Expect(int calls) {
  const MutexLock lock(&mutex_);
  expected_ += calls;
}

// The descriptor has its edge and its level under the lock, so that no other thread's Take comes in
// between.
void CompletionQueue::Put(const std::shared_ptr<Pending>& ended) {
  const MutexLock lock(&mutex_);
  --expected_;
  if (first_ == nullptr) {
    first_ = ended;
    (void)eventfd_write(fd_, 1);
  } else {
    last_->next_ = ended;
  }
  last_ = ended.get();
}

size_t CompletionQueue::Take(absl::Span<hvd_completion_t> completions) {
  const MutexLock lock(&mutex_);
  size_t taken = 0;
  for (; taken < completions.size() && first_ != nullptr; ++taken) {
    completions[taken] = first_->completion_;
    first_ = std::exchange(first_->next_, nullptr);
  }
  eventfd_t rings = 0;
  if (first_ == nullptr) (void)eventfd_read(fd_, &rings);
  return taken;
}

bool CompletionQueue::idle() const {
  const MutexLock lock(&mutex_);
  return expected_ == 0;
}

}  // namespace hvd::rt

extern "C" {

hvd_status_t hvd_queue_create(hvd_queue_t** queue) {
  return hvd::rt::Guarded([&]() -> hvd_status_t {
    if (queue == nullptr) return hvd::rt::Fail(HVD_ERR_INVALID, "queue is NULL");
    auto made = hvd::rt::CompletionQueue::Make();
    if (!made.ok()) return hvd::rt::Return(made.status());
    *queue = made->release()->handle();
    return HVD_OK;
  });
}

int32_t hvd_queue_fd(const hvd_queue_t* queue) {
  return queue == nullptr ? -1 : reinterpret_cast<const hvd::rt::CompletionQueue*>(queue)->fd();
}

hvd_status_t hvd_queue_next(hvd_queue_t* queue, hvd_completion_t* completions, int32_t capacity,
                            int32_t* count) {
  return hvd::rt::Guarded([&]() -> hvd_status_t {
    if (queue == nullptr || count == nullptr) {
      return hvd::rt::Fail(HVD_ERR_INVALID, queue == nullptr ? "queue is NULL" : "count is NULL");
    }
    if (capacity < 0 || (capacity > 0 && completions == nullptr)) {
      return hvd::rt::Fail(HVD_ERR_INVALID,
                           capacity < 0 ? "capacity is negative" : "completions is NULL");
    }
    *count = static_cast<int32_t>(
        hvd::rt::CompletionQueue::Of(queue)->Take({completions, static_cast<size_t>(capacity)}));
    return HVD_OK;
  });
}

hvd_status_t hvd_queue_destroy(hvd_queue_t* queue) {
  return hvd::rt::Guarded([&]() -> hvd_status_t {
    hvd::rt::CompletionQueue* own = hvd::rt::CompletionQueue::Of(queue);
    if (own != nullptr && !own->idle()) {
      return hvd::rt::Fail(
          HVD_ERR_INVALID,
          "hvd_queue_destroy: calls that name the queue are under way; wait for them");
    }
    delete own;
    return HVD_OK;
  });
}

}  // extern "C"
