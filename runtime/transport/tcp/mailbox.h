// SPDX-License-Identifier: Apache-2.0
// The messages that this rank and one peer have for one another: matches those that come with those
// that are waited for, and decides which may be sent. Knows no sockets. Guarded by the transport's
// mutex.
//
// Both sides know a message's size, so it tells its way. A large one is never sent before its
// receiver waits for it: the receiver grants it when it begins to wait, so that the bytes go
// straight to their place and nothing is ever kept. A small one is sent at once and kept if nobody
// waits for it yet. The bytes that may be kept are bounded: the sender has so much credit, which
// comes back as messages are taken; beyond it, it announces the message, and the receiver grants it
// as a large one when somebody waits. Nothing that is read ever has to wait for something else, so
// that no order of receives can deadlock.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/transport/tcp/frame.h"
#include "runtime/transport/tcp/message.h"

namespace hvd::rt {

// The same on all ranks.
struct MailboxLimits {
  size_t small_bytes = size_t{64} << 10;  // up to this a message is small
  size_t credit_bytes = size_t{2} << 20;  // of small messages, each counted with its frame
  // Announcements and grants that a peer may leave unanswered: what they take is bounded too.
  size_t pending = size_t{1} << 20;

  static MailboxLimits For(int size);  // of the job
};

// Takes what shall go to the peer.
class Outbox {
 public:
  virtual ~Outbox() = default;
  // `message` may be null; else frame.bytes of it from frame.offset on follow the frame.
  virtual void Put(const Frame& frame, const std::shared_ptr<Outbound>& message) = 0;
};

// Where a frame's payload goes.
struct Landing {
  std::shared_ptr<Inbound> to;
  size_t offset = 0;
  size_t bytes = 0;
  bool takes_credit = false;
};

class Mailbox {
 public:
  Mailbox(const MailboxLimits& limits, Outbox* out) : limits_(limits), out_(out) {}

  void Post(const std::shared_ptr<Inbound>& receive);
  void Give(const std::shared_ptr<Outbound>& send);
  // Their requests are destroyed before they were done. A receive whose message has begun to come
  // swallows it; else the next one of its tag gets it.
  void Withdraw(const std::shared_ptr<Inbound>& receive);
  // Withdraws a send that was not put into the outbox yet; else it does nothing.
  void Withdraw(const std::shared_ptr<Outbound>& send);

  // A frame that came; a payload follows where it says so. An error: the peer breaks the rules.
  absl::StatusOr<Landing> Take(const Frame& frame);
  void Landed(const Landing& landing);

  // All that is pending ends with this.
  void Fail(const absl::Status& status);

 private:
  using Key = uint64_t;  // of a tag
  struct Small {
    std::list<std::shared_ptr<Inbound>> posted, arrived;
  };
  struct Granted {
    uint64_t id = 0;
    uint64_t bytes = 0;
  };
  // To be sent, and what the peer waits for: one of the two lists is empty.
  struct Large {
    std::list<std::shared_ptr<Outbound>> sends;
    std::list<Granted> grants;
  };

  static Key KeyOf(MessageTag tag) { return uint64_t{tag.channel} << 32 | tag.step; }
  static size_t CostOf(size_t bytes) { return bytes + sizeof(Frame); }
  bool IsSmall(size_t bytes) const { return bytes <= limits_.small_bytes; }

  bool Adopt(const std::shared_ptr<Inbound>& receive);
  void Grant(const std::shared_ptr<Inbound>& receive, uint64_t announced);
  void Deliver(const std::shared_ptr<Inbound>& arrived, const std::shared_ptr<Inbound>& receive);
  void PutWhole(const std::shared_ptr<Outbound>& send, uint64_t id);
  void Taken(size_t cost);
  absl::StatusOr<Landing> TakeSmall(const Frame& frame);
  absl::StatusOr<Landing> TakeChunk(const Frame& frame);
  absl::Status TakeAnnounce(const Frame& frame);
  absl::Status TakeGrant(const Frame& frame);

  const MailboxLimits limits_;
  Outbox* const out_;
  uint64_t next_id_ = 1;
  // In.
  std::unordered_map<Key, Small> small_;
  std::unordered_map<uint64_t, std::shared_ptr<Inbound>> granted_;  // by id
  std::multimap<Key, uint64_t> left_;  // ids of those granted whose receive was withdrawn
  size_t kept_ = 0;                    // cost of what came and nobody has taken
  size_t announcements_ = 0;           // that nobody waits for
  size_t taken_ = 0;                   // cost not returned yet
  // Out.
  std::unordered_map<Key, Large> large_;
  std::unordered_map<uint64_t, std::shared_ptr<Outbound>> announced_;  // by id
  size_t grants_ = 0;                                                  // that nothing was sent for
  size_t used_ = 0;                                                    // of the credit
};

}  // namespace hvd::rt
