// SPDX-License-Identifier: Apache-2.0
// Notes for hvdd which messages this rank sends, asks for and gets (proto/page/message_counts.h).
// Whoever uses a Transport says so to its notes.
#pragma once

#include <cstdint>
#include <vector>

#include "proto/page/message_counts.h"

namespace hvd::rt {

// The purpose of a message; sender and receiver must name the same. Small integers with structure,
// so that two exchanges never meet: `channel` separates users of the transport (agreement,
// cross-host collectives), `step` counts within one.
struct MessageTag {
  uint16_t channel = 0;
  uint32_t step = 0;
};

// Threads: one at a time, who executes the process set's requests. Copies write to the same place.
class MessageNotes {
 public:
  // Nobody looks.
  MessageNotes() = default;
  // Both are borrowed. `global_ranks`: by rank of the process set; empty: the same.
  MessageNotes(MessageCounts* counts, const std::vector<int>* global_ranks)
      : counts_(counts), global_ranks_(global_ranks) {}

  void Sent(int peer, MessageTag tag) const { Note(peer, tag, MessageCounts::What::kSent); }
  void Asked(int peer, MessageTag tag) const { Note(peer, tag, MessageCounts::What::kAsked); }
  void Came(int peer, MessageTag tag) const { Note(peer, tag, MessageCounts::What::kCame); }

 private:
  void Note(int peer, MessageTag tag, MessageCounts::What what) const {
    if (counts_ == nullptr) return;
    const int rank = global_ranks_->empty() ? peer : (*global_ranks_)[static_cast<size_t>(peer)];
    counts_->Count(static_cast<uint32_t>(rank), tag.channel, tag.step, what);
  }

  MessageCounts* counts_ = nullptr;
  const std::vector<int>* global_ranks_ = nullptr;
};

}  // namespace hvd::rt
