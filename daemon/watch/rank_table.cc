#include "daemon/watch/rank_table.h"

#include <sys/wait.h>

#include <cstring>
#include <utility>

namespace hvd {

void RankTable::Exited(int rank, int status, bool out_of_memory) {
  RankEnd& end = ranks_[rank].end;
  if (WIFSIGNALED(status)) {
    end.signal = WTERMSIG(status);
    end.core_dumped = WCOREDUMP(status);
  } else {
    end.exit_code = WEXITSTATUS(status);
  }
  end.out_of_memory = out_of_memory;
  ranks_[rank].process_ended = true;
}

void RankTable::NeverStarted(int rank, int exit_code, std::string why) {
  ranks_[rank].end.exit_code = exit_code;
  ranks_[rank].end.exec_error = std::move(why);
  ranks_[rank].process_ended = true;
}

void RankTable::Drained(int rank, std::vector<std::string> last_lines) {
  ranks_[rank].end.last_lines = std::move(last_lines);
  ranks_[rank].drained = true;
}

void RankTable::LinkSpoke(int rank, LinkFacts facts) {
  ranks_[rank].end.link = std::move(facts);
  ranks_[rank].link_spoke = true;
}

std::optional<RankEnd> RankTable::TakeEnd(int rank) {
  Rank& known = ranks_[rank];
  if (known.taken || !known.process_ended || !known.drained || !known.link_spoke) {
    return std::nullopt;
  }
  known.taken = true;
  known.end.local_rank = rank;
  return known.end;
}

}  // namespace hvd
