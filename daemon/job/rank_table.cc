// SPDX-License-Identifier: Apache-2.0
#include "daemon/job/rank_table.h"

#include <utility>

namespace hvd::daemon {

void RankTable::Expect(int slot, uint64_t member) {
  ranks_[slot] = Rank();
  ranks_[slot].death.slot = slot;
  ranks_[slot].death.member = member;
}

const RankDeath& RankTable::Ended(RankDeath end) {
  Rank& known = ranks_[end.slot];
  end.member = known.death.member;
  end.pid = known.death.pid;
  end.link = std::move(known.death.link);
  end.last_lines = std::move(known.death.last_lines);
  known.death = std::move(end);
  known.process_ended = true;
  return known.death;
}

void RankTable::Drained(int slot, std::vector<std::string> last_lines) {
  ranks_[slot].death.last_lines = std::move(last_lines);
  ranks_[slot].drained = true;
}

void RankTable::LinkSpoke(int slot, LinkFacts facts) {
  ranks_[slot].death.link = std::move(facts);
  ranks_[slot].link_spoke = true;
}

std::optional<RankDeath> RankTable::TakeEnd(int slot) {
  Rank& known = ranks_[slot];
  if (known.taken || !known.process_ended || !known.drained || !known.link_spoke) {
    return std::nullopt;
  }
  known.taken = true;
  return known.death;
}

}  // namespace hvd::daemon
