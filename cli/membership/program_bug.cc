// SPDX-License-Identifier: Apache-2.0
#include "cli/membership/program_bug.h"

#include <signal.h>

#include <algorithm>

namespace hvd {
namespace {

// Somebody else's doing: a person's, the batch system's.
bool ComesFromOutside(const DeathSeen& death) {
  if (death.out_of_memory) return false;
  return death.signal == SIGKILL || death.signal == SIGTERM || death.signal == SIGINT ||
         death.signal == SIGHUP;
}

bool EndsAlike(const DeathSeen& one, const DeathSeen& other) {
  return one.signal == other.signal && one.code == other.code;
}

}  // namespace

bool ProgramBug::Died(const DeathSeen& death, bool one_host, int members) {
  if (ComesFromOutside(death)) return false;
  int at_once = 1;  // of the same epoch
  bool elsewhere = false;
  bool same_share = false;
  for (const DeathSeen& earlier : deaths_) {
    if (!EndsAlike(earlier, death)) continue;
    at_once += earlier.epoch == death.epoch && death.epoch != 0;
    elsewhere |= earlier.host != death.host;
    same_share |= earlier.host == death.host && earlier.share == death.share;
  }
  deaths_.push_back(death);
  if (elsewhere) return true;
  return one_host && (same_share || (members > 1 && at_once >= members));
}

}  // namespace hvd
