// An asynchronous call in flight, and how its end is told.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "hvd/hvd.h"
#include "runtime/engine/request/request.h"

namespace hvd {

class Engine;
class CompletionQueue;
class StagedCall;

// Owned by the handle table, by who waits for it and, until it is told, by itself. The engine
// borrows the requests.
class Pending : public RequestObserver {
 public:
  std::vector<std::unique_ptr<Request>> requests;  // one, or one a dtype of a group
  std::weak_ptr<Engine> engine;                    // gone: every request is done
  std::shared_ptr<StagedCall> staged;              // of tensors on a GPU: has them instead

  // Before they are submitted as `handle`, when the options ask for it.
  static void Tell(const std::shared_ptr<Pending>& pending, const hvd_options_t& options,
                   hvd_handle_t handle);
  // They were not submitted.
  void Untell();
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

}  // namespace hvd
