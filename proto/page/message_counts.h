// SPDX-License-Identifier: Apache-2.0
// Which messages a rank has sent to the ranks of other hosts, and which it has asked for and got:
// for hvdd, which finds out between which hosts nothing passes any more although both ends live.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace hvd {

// The channel of those by which hosts agree on an order.
inline constexpr uint32_t kAgreementMessages = 1;

// Messages of one kind and operation between this rank and one peer.
struct MessageCount {
  uint32_t peer = 0;     // of the job
  uint32_t channel = 0;  // of its process set; ends that talk to one another name the same
  uint32_t step = 0;
  uint32_t sent = 0;   // begun
  uint32_t asked = 0;  // receives begun
  uint32_t came = 0;   // of these, ended
};

// A rank's latest, one process set. One writer: who executes the set's requests. Messages that are
// long over make room for new ones; those under way count as new. Zeroed memory is empty.
class MessageCounts {
 public:
  enum class What { kSent, kAsked, kCame };
  // Nothing was counted yet.
  void Clear();
  void Count(uint32_t peer, uint32_t channel, uint32_t step, What what);
  // By anybody; an entry that changes at the moment is left out.
  std::vector<MessageCount> Read() const;

 private:
  // As many kinds of messages as are told apart: rows of a few places, by their keys.
  static constexpr uint32_t kPlaces = 128;
  struct Entry {
    // Peer + 1, channel and step; 0: none, or it changes.
    std::atomic<uint64_t> key;
    std::atomic<uint32_t> counts[3];
    uint32_t used;  // the greater, the later; the writer's alone
  };
  static_assert(sizeof(Entry) == 24);

  Entry entries_[kPlaces];
};

}  // namespace hvd
