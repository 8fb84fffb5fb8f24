// SPDX-License-Identifier: Apache-2.0
#include "cli/membership/faults/program_bug.h"

#include <signal.h>

#include <set>
#include <utility>

namespace hvd::cli {
namespace {

bool EndsAlike(const DeathSeen& one, const DeathSeen& other) {
  return one.signal == other.signal && one.code == other.code;
}

}  // namespace

bool ComesFromOutside(const DeathSeen& death) {
  if (death.out_of_memory) return false;
  return death.signal == SIGKILL || death.signal == SIGTERM || death.signal == SIGINT ||
         death.signal == SIGHUP;
}

// The same share again and again is its budget's affair.
bool ProgramBug::Died(const DeathSeen& death, int members) {
  if (ComesFromOutside(death)) return false;
  std::set<std::pair<std::string, int>> at_once = {{death.host, death.share}};
  bool elsewhere = false;
  for (const DeathSeen& earlier : deaths_) {
    if (!EndsAlike(earlier, death)) continue;
    if (earlier.epoch == death.epoch) at_once.insert({earlier.host, earlier.share});
    elsewhere |= earlier.host != death.host;
  }
  deaths_.push_back(death);
  return elsewhere || (members > 1 && static_cast<int>(at_once.size()) >= members);
}

}  // namespace hvd::cli
