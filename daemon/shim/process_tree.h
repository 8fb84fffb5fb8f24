// SPDX-License-Identifier: Apache-2.0
// The descent of processes, read from /proc. Signals go through pidfds that were checked after they
// were opened, so a number that was reused in between is never hit.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "base/descriptor.h"

namespace hvd::daemon {

struct ProcessFact {
  int pid = 0;
  int parent = 0;
  int group = 0;
  char state = '?';   // as in /proc/PID/stat: Z is a zombie
  uint64_t born = 0;  // ticks since the machine's start; with the pid, no other process
};

// Parses the text of /proc/PID/stat. False: not such a line.
bool ParseStat(std::string_view text, ProcessFact* fact);

// All processes that /proc shows.
std::vector<ProcessFact> ReadProcesses();

// Returns the processes below `root`, without it. Pure.
std::vector<ProcessFact> Descendants(absl::Span<const ProcessFact> all, int root);

// Returns the processes below `root` that belong to none of the ranks in `living` (pids): neither
// below one nor an orphan in the process group that each began with. Pure.
std::vector<ProcessFact> Leftovers(absl::Span<const ProcessFact> all, int root,
                                   const std::set<int>& living);

// A pidfd of a process that is still what `fact` says; invalid when it is gone.
Descriptor OpenProcess(const ProcessFact& fact);
bool SendSignal(int pidfd, int signal);

// Stops every descendant of `root` until no new one shows, then kills them all. With `mark`, also
// processes of this user whose environment holds it ("HVD_JOB_MARK=…"). Returns how many were hit.
int FreezeAndKill(int root, const std::string& mark);

// A member whose own process has ended.
struct DeadMember {
  int group = 0;     // its process group
  std::string mark;  // in its environment: "HVD_MEMBER_MARK=…"
};
// Returns the processes that it has left below `root`: those that carry its mark, those in its
// process group, and all below these. A process that belongs to a rank in `living` (pids) or
// carries another member's mark is spared. Pure but for `mark_of`, which gives a process's mark;
// empty: none.
std::vector<ProcessFact> LeftBy(const DeadMember& dead, absl::Span<const ProcessFact> all, int root,
                                const std::set<int>& living,
                                const std::function<std::string(int pid)>& mark_of);
// Stops it until nothing new shows, then kills it. Returns how many were hit.
int KillLeftBy(const DeadMember& dead, int root, const std::set<int>& living);

// Living (not zombie) descendants of `root` and processes with `mark` (empty: none).
int CountLiving(int root, const std::string& mark);

}  // namespace hvd::daemon
