// SPDX-License-Identifier: Apache-2.0
#include "daemon/members/rank_death.h"

#include <sys/wait.h>

#include "base/process_end.h"

namespace hvd::daemon {

int RankDeath::signal() const { return WIFSIGNALED(status) ? WTERMSIG(status) : 0; }

int RankDeath::exit_code() const { return WIFSIGNALED(status) ? 0 : WEXITSTATUS(status); }

bool RankDeath::core_dumped() const { return WIFSIGNALED(status) && WCOREDUMP(status); }

bool RankDeath::well() const { return !never_started && !with_shim && status == 0; }

std::string RankDeath::how() const {
  if (never_started) return "never started";
  return with_shim ? "ended with its shim" : DescribeEnd(status);
}

}  // namespace hvd::daemon
