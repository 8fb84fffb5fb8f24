// SPDX-License-Identifier: Apache-2.0
// One bidirectional stream of link A on the driver's side, over gRPC's completion queue.
#pragma once

#include <grpcpp/grpcpp.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/mutex.h"

namespace hvd::cli {

// A completion's tag: whoever started the operation.
class Tag {
 public:
  virtual ~Tag() = default;
  virtual void Done(bool ok) = 0;
};

// A read is posted unless the last message was said to be the last for now; writes go one after the
// other. Done runs on the thread of the completion queue, Write on any.
template <class Out, class In>
class Stream {
 public:
  // False: nothing more is awaited before ReadMore. gRPC gives room back to the sender by a message
  // of its own while somebody reads, and with the next write otherwise.
  using OnRead = std::function<bool(In)>;
  using OnEnd = std::function<void(const std::string&)>;

  Stream(OnRead on_read, OnEnd on_end) : on_read_(std::move(on_read)), on_end_(std::move(on_end)) {}

  template <class Begin>  // (context, started tag) → ClientAsyncReaderWriter
  void Start(Begin begin) {
    context_.set_wait_for_ready(false);
    const MutexLock lock(&mutex_);
    busy_ = true;  // until the stream has started
    rpc_ = begin(&context_, static_cast<void*>(&started_));
  }

  // `latest`: replaces a message of the same kind that has not left yet (acknowledgements).
  void Write(const Out& message, bool latest) {
    const MutexLock lock(&mutex_);
    if (ended_) return;
    if (latest && !queue_.empty()) {
      queue_.back() = message;
    } else {
      queue_.push_back(message);
    }
    WriteNext();
  }

  void ReadMore() {
    const MutexLock lock(&mutex_);
    PostRead();
  }

 private:
  struct Step : Tag {
    Step(Stream* owner, void (Stream::*step)(bool)) : owner(owner), step(step) {}
    void Done(bool ok) override { (owner->*step)(ok); }
    Stream* owner;
    void (Stream::*step)(bool);
  };

  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (busy_ || ended_ || queue_.empty()) return;
    busy_ = true;
    rpc_->Write(queue_.front(), &written_);
    queue_.pop_front();
  }

  void Started(bool ok) {
    const MutexLock lock(&mutex_);
    busy_ = false;
    if (!ok) return End();
    reading_ = false;
    PostRead();
    WriteNext();
  }

  void Written(bool ok) {
    const MutexLock lock(&mutex_);
    busy_ = false;
    if (ok) WriteNext();  // else the read fails, too, and ends the stream
  }

  void Read(bool ok) {
    if (!ok) {
      const MutexLock lock(&mutex_);
      return End();
    }
    const bool more = on_read_(std::move(incoming_));
    incoming_ = In();
    const MutexLock lock(&mutex_);
    reading_ = false;
    if (more) PostRead();
  }

  void PostRead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (reading_ || ended_) return;
    reading_ = true;
    rpc_->Read(&incoming_, &read_done_);
  }

  void End() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (ended_) return;
    ended_ = true;
    queue_.clear();
    context_.TryCancel();  // where we could not read, hvdd does not know that this is the end
    rpc_->Finish(&status_, &finished_);
  }

  void Finished(bool) { on_end_(status_.ok() ? "" : status_.error_message()); }

  const OnRead on_read_;
  const OnEnd on_end_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<Out, In>> rpc_;
  Mutex mutex_;
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;    // a start or a write is under way
  bool reading_ ABSL_GUARDED_BY(mutex_) = true;  // a start or a read is under way
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Out> queue_ ABSL_GUARDED_BY(mutex_);
  In incoming_;  // gRPC's while a read is posted, then the completion queue's thread's
  grpc::Status status_;
  Step started_{this, &Stream::Started};
  Step written_{this, &Stream::Written};
  Step read_done_{this, &Stream::Read};
  Step finished_{this, &Stream::Finished};
};

}  // namespace hvd::cli
