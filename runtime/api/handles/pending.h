// SPDX-License-Identifier: Apache-2.0
// An asynchronous call in flight, and how its end is told.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "hvd/hvd.h"
#include "runtime/engine/request/request.h"
#include "runtime/sets/set_requests.h"

namespace hvd::rt {

class CompletionQueue;
class StagedCall;

// Owned by the handle table, by who waits for it and, until it is told, by itself. The engine
// borrows the requests.
class Pending : public RequestObserver, public SetRequests {
 public:
  std::shared_ptr<StagedCall> staged;  // of tensors on a GPU: has the requests instead

  // Before they are submitted as `handle`, when the options ask for it.
  static void Tell(const std::shared_ptr<Pending>& pending, const hvd_options_t& options,
                   hvd_handle_t handle);
  // They were not submitted.
  void Untell();
  // The last `count` of them were not submitted, and are done. False: the others have been told
  // already, so that nobody will tell of the call; as if Untell had followed.
  bool UntellLast(size_t count);
  // Every request is done, and the last is being told.
  bool IsOver() const;

  void OnDone(Request* request) override;

 private:
  friend class CompletionQueue;

  std::atomic<size_t> left_{0};  // of the requests; 0: nobody is to be told
  decltype(hvd_options_t::done) done_ = nullptr;
  void* done_arg_ = nullptr;
  CompletionQueue* queue_ = nullptr;
  hvd_completion_t completion_ = {};
  std::shared_ptr<Pending> self_;  // until it is told
  std::shared_ptr<Pending> next_;  // the queue's
};

}  // namespace hvd::rt
