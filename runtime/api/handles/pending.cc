// SPDX-License-Identifier: Apache-2.0
#include "runtime/api/handles/pending.h"

#include <utility>

#include "runtime/api/handles/completion_queue.h"
#include "runtime/errors/errors.h"

namespace hvd::rt {

void Pending::Tell(const std::shared_ptr<Pending>& pending, const hvd_options_t& options,
                   hvd_handle_t handle) {
  if (options.done == nullptr && options.queue == nullptr) return;
  pending->done_ = options.done;
  pending->done_arg_ = options.done_arg;
  pending->queue_ = CompletionQueue::Of(options.queue);
  pending->completion_.tag = options.tag;
  pending->completion_.handle = handle;
  pending->left_ = pending->requests.size();
  pending->self_ = pending;
  if (pending->queue_ != nullptr) pending->queue_->Expect(1);
  for (const auto& request : pending->requests) request->observer = pending.get();
}

void Pending::Untell() {
  if (left_.exchange(0) == 0) return;
  if (queue_ != nullptr) queue_->Expect(-1);
  self_.reset();
}

bool Pending::UntellLast(size_t count) {
  if (left_.load() == 0 || left_.fetch_sub(count) > count) return true;
  if (queue_ != nullptr) queue_->Expect(-1);
  self_.reset();
  return false;
}

bool Pending::IsOver() const {
  if (left_.load(std::memory_order_acquire) != 0) return false;
  for (const auto& request : requests) {
    if (!request->done.load(std::memory_order_acquire)) return false;
  }
  return true;
}

// The first error counts, as in a wait.
void Pending::OnDone(Request*) {
  if (left_.fetch_sub(1) > 1) return;
  const std::shared_ptr<Pending> self = std::move(self_);
  absl::Status status;
  for (const auto& request : requests) {
    if (status.ok()) status = request->result.status;
  }
  completion_.status = NoteName(ReturnExecuted(status), requests.front()->name);
  if (done_ != nullptr) {
    done_(done_arg_, completion_.handle, static_cast<hvd_status_t>(completion_.status));
  } else {
    queue_->Put(self);
  }
}

}  // namespace hvd::rt
