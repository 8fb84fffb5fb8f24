// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/pairs/pair_book.h"

namespace hvd::rt {

std::optional<PairNotice> PairBook::Ask(const PairKey& key, PairTask* mine) {
  const auto at = waiting_.try_emplace(key).first;
  std::deque<PairNotice>& theirs = at->second.theirs;
  if (theirs.empty()) {
    at->second.mine.push_back(mine);
    return std::nullopt;
  }
  const PairNotice met = theirs.front();
  theirs.pop_front();
  if (theirs.empty()) waiting_.erase(at);
  return met;
}

PairTask* PairBook::Hear(const PairNotice& theirs) {
  PairKey key = theirs.key;
  key.side = Opposite(key.side);
  const auto at = waiting_.try_emplace(key).first;
  std::deque<PairTask*>& mine = at->second.mine;
  if (mine.empty()) {
    at->second.theirs.push_back(theirs);
    return nullptr;
  }
  PairTask* met = mine.front();
  mine.pop_front();
  if (mine.empty()) waiting_.erase(at);
  return met;
}

std::vector<PairNotice> PairBook::TakeUnanswered(uint32_t round) {
  std::vector<PairNotice> taken;
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    std::deque<PairNotice>& theirs = at->second.theirs;
    for (; !theirs.empty() && at->first.round <= round; theirs.pop_front()) {
      taken.push_back(theirs.front());
    }
    at = theirs.empty() && at->second.mine.empty() ? waiting_.erase(at) : std::next(at);
  }
  return taken;
}

}  // namespace hvd::rt
