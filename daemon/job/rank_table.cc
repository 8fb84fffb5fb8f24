// SPDX-License-Identifier: Apache-2.0
#include "daemon/job/rank_table.h"

#include <sys/wait.h>

#include <cstring>
#include <utility>

namespace hvd {

void RankTable::Exited(int slot, int status, bool out_of_memory) {
  RankEnd& end = ranks_[slot].end;
  if (WIFSIGNALED(status)) {
    end.signal = WTERMSIG(status);
    end.core_dumped = WCOREDUMP(status);
  } else {
    end.exit_code = WEXITSTATUS(status);
  }
  end.out_of_memory = out_of_memory;
  ranks_[slot].process_ended = true;
}

void RankTable::NeverStarted(int slot, int exit_code, std::string why) {
  ranks_[slot].end.exit_code = exit_code;
  ranks_[slot].end.exec_error = std::move(why);
  ranks_[slot].process_ended = true;
}

void RankTable::Drained(int slot, std::vector<std::string> last_lines) {
  ranks_[slot].end.last_lines = std::move(last_lines);
  ranks_[slot].drained = true;
}

void RankTable::LinkSpoke(int slot, LinkFacts facts) {
  ranks_[slot].end.link = std::move(facts);
  ranks_[slot].link_spoke = true;
}

std::optional<RankEnd> RankTable::TakeEnd(int slot) {
  Rank& known = ranks_[slot];
  if (known.taken || !known.process_ended || !known.drained || !known.link_spoke) {
    return std::nullopt;
  }
  known.taken = true;
  known.end.slot = slot;
  return known.end;
}

}  // namespace hvd
