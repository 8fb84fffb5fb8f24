// SPDX-License-Identifier: Apache-2.0
// Messages between the ranks of a group. Implementations: tcp/ and ucx/ (between hosts),
// loopback/ (ranks as threads, for tests). A transport belongs to one epoch and is thrown away with
// it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/transport/message_notes.h"
#include "runtime/transport/sleepers.h"

namespace hvd::rt {

// An operation in flight. Destroying one that is not done cancels it (a receive that nothing has
// come for), or abandons it: then its memory may be read and written until Stop.
class TransportRequest {
 public:
  virtual ~TransportRequest() = default;
  // OK and true when done; an error once the transport is broken. Does not make progress itself.
  virtual absl::StatusOr<bool> Test() = 0;
};

// Threads: any, at once, and so may their requests; each request is one thread's. Progress may
// complete requests of any thread: who makes some tells those asleep (Waiter does).
class Transport {
 public:
  virtual ~Transport() = default;
  // This rank's address as the others' Connect needs it.
  virtual absl::StatusOr<std::string> Address() = 0;
  // Addresses by rank of the whole job. Connections may be made lazily.
  virtual absl::Status Connect(const std::vector<std::string>& addresses) = 0;
  // The buffers stay the caller's and must live until the request is done or destroyed. Messages of
  // one (peer, tag) arrive in order; the receiver's `bytes` must be exactly the sender's.
  virtual absl::StatusOr<std::unique_ptr<TransportRequest>> Send(int peer, MessageTag tag,
                                                                 const void* data,
                                                                 size_t bytes) = 0;
  virtual absl::StatusOr<std::unique_ptr<TransportRequest>> Receive(int peer, MessageTag tag,
                                                                    void* data, size_t bytes) = 0;
  // Done when what peers have asked of this rank's side of their connections has been answered;
  // null: it has been.
  virtual absl::StatusOr<std::unique_ptr<TransportRequest>> Settle() = 0;
  // Moves things along without blocking; true if something happened. Once it has been stopped:
  // lets go of all memory that it was given, and returns false.
  virtual bool Progress() = 0;
  // A descriptor that becomes readable when there is something to progress; -1 if there is none.
  virtual int EventFd() = 0;
  // Call before sleeping on EventFd: false means there is progress to make first.
  virtual bool Arm() = 0;

  // When it returns, no memory that Send and Receive were given is touched any more, by no thread
  // and no device, however much was under way: its owner may free it. All that follows fails. An
  // epoch that breaks needs it before anybody hears that.
  void Stop() {
    stopped_.store(true);
    (void)Progress();
  }

  // The process's threads that sleep until something moves here.
  Sleepers& sleepers() { return sleepers_; }
  // Where its users note what they send and await.
  const MessageNotes& notes() const { return notes_; }
  void set_notes(const MessageNotes& notes) { notes_ = notes; }

 protected:
  bool stopped() const { return stopped_.load(); }
  static absl::Status HasStopped() { return absl::AbortedError("the transport has been stopped"); }

 private:
  MessageNotes notes_;
  Sleepers sleepers_;
  std::atomic<bool> stopped_{false};
};

}  // namespace hvd::rt
