// SPDX-License-Identifier: Apache-2.0
// Which of this rank's sends and receives meet which of one peer's: the first of a key that nobody
// has met yet, on both sides, so that both find the same pairs without asking. Pure.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "runtime/engine/pairs/pair_notice.h"

namespace hvd::rt {

struct PairTask;  // a send or receive of this rank

class PairBook {
 public:
  // This rank asks, by `key`: what the peer has said of it, if it has.
  std::optional<PairNotice> Ask(const PairKey& key, PairTask* mine);
  // The peer says something: the task of this rank that it is for; null: it is kept.
  PairTask* Hear(const PairNotice& theirs);
  // Takes the notices of what the peer has asked for until this round and this rank has not, as if
  // it had now.
  std::vector<PairNotice> TakeUnanswered(uint32_t round);

 private:
  // One of the two is empty.
  struct Waiting {
    std::deque<PairTask*> mine;
    std::deque<PairNotice> theirs;
  };
  std::map<PairKey, Waiting> waiting_;  // by this rank's side; none is empty
};

}  // namespace hvd::rt
