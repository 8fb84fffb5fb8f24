// SPDX-License-Identifier: Apache-2.0
// One bidirectional stream of link A on the daemon's side, over gRPC's completion queue.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <utility>

#include "base/mutex.h"

namespace hvd::daemon {

// A completion's tag: whoever started the operation.
class LinkTag {
 public:
  virtual ~LinkTag() = default;
  virtual void Done(bool ok) = 0;
};

// A read is always posted, writes go one after the other; what is written before the driver opens
// the stream waits. Done, and so the handlers, run on the queue's thread, writes on any.
template <class In, class Out>
class LinkStream {
 public:
  struct Handlers {
    std::function<void(const In&)> on_read;
    std::function<void()> on_end;  // once; at the server's end also if it was never opened
  };

  explicit LinkStream(Handlers handlers) : handlers_(std::move(handlers)) {}

  // `request`: (context, stream, tag) → asks gRPC for the driver's call.
  template <class Request>
  void Accept(Request request) {
    request(&context_, &rpc_, static_cast<void*>(&accepted_));
  }

  void Write(const Out& message) {
    const MutexLock lock(&mutex_);
    Put(message);
  }

  // Replaces the newest message that has not left yet.
  void WriteLatest(const Out& message) {
    const MutexLock lock(&mutex_);
    if (!queue_.empty()) {
      queue_.back() = message;
    } else {
      Put(message);
    }
  }

  // Waits until gRPC has taken it. False: the stream has ended.
  bool WriteThrough(const Out& message) {
    MutexLock lock(&mutex_);
    Put(message);
    const uint64_t number = put_;
    while (!ended_ && taken_ < number) changed_.Wait(&mutex_);
    return !ended_;
  }

 private:
  struct Step : LinkTag {
    Step(LinkStream* owner, void (LinkStream::*step)(bool)) : owner(owner), step(step) {}
    void Done(bool ok) override { (owner->*step)(ok); }
    LinkStream* owner;
    void (LinkStream::*step)(bool);
  };

  void Put(const Out& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (ended_) return;
    queue_.push_back(message);
    ++put_;
    WriteNext();
  }

  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (busy_ || ended_ || queue_.empty()) return;
    busy_ = true;
    rpc_.Write(queue_.front(), &written_);
    queue_.pop_front();
  }

  void Accepted(bool ok) {
    if (!ok) return End();  // the server goes
    queue_thread_.AssertHeld();
    const MutexLock lock(&mutex_);
    rpc_.Read(&incoming_, &read_done_);
    busy_ = false;
    WriteNext();
  }

  void Written(bool ok) {
    const MutexLock lock(&mutex_);
    busy_ = false;
    if (ended_) return Finish();
    if (!ok) return;  // the read fails, too, and ends the stream
    ++taken_;
    changed_.NotifyAll();
    WriteNext();
  }

  void Read(bool ok) {
    if (!ok) return End();
    queue_thread_.AssertHeld();
    handlers_.on_read(incoming_);
    incoming_ = In();
    rpc_.Read(&incoming_, &read_done_);
  }

  void End() {
    {
      const MutexLock lock(&mutex_);
      ended_ = true;
      queue_.clear();
      changed_.NotifyAll();
      if (!busy_) Finish();
    }
    handlers_.on_end();
  }

  void Finish() { rpc_.Finish(grpc::Status::OK, &finished_); }
  void Finished(bool) {}

  const Handlers handlers_;
  grpc::ServerContext context_;
  grpc::ServerAsyncReaderWriter<Out, In> rpc_{&context_};
  Mutex mutex_;
  Condition changed_;
  // A write is under way, or the stream is not open yet.
  bool busy_ ABSL_GUARDED_BY(mutex_) = true;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t put_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t taken_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<Out> queue_ ABSL_GUARDED_BY(mutex_);
  ThreadRole queue_thread_;  // the completion queue's, which alone calls Done
  In incoming_ ABSL_GUARDED_BY(queue_thread_);
  Step accepted_{this, &LinkStream::Accepted};
  Step written_{this, &LinkStream::Written};
  Step read_done_{this, &LinkStream::Read};
  Step finished_{this, &LinkStream::Finished};
};

}  // namespace hvd::daemon
