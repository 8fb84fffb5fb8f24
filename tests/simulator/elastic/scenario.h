// SPDX-License-Identifier: Apache-2.0
// What one run is: its hosts, its program, its limits and its faults, drawn from a seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/front/words/run_options.h"
#include "tests/simulator/elastic/scheduler.h"

namespace hvd::elastic_simulator {

// Where a worker is; it may die at each of these.
enum class Place {
  kStarted,      // before hvd_init
  kJoins,        // it has asked for an epoch
  kStarts,       // it has heard of one
  kAddressed,    // it has given its address
  kConnects,     // it has the table
  kReady,        // it has said that it is
  kBegins,       // Go has come
  kRestores,     // it reads a commit
  kBrings,       // the root's state is under way
  kComputes,     // between collectives
  kReduces,      // in a training step
  kBeginsState,  // its cell is cleared, no byte is written
  kWritesState,  // between bytes
  kEndsState,    // its bytes are written, its cell is not
  kAgrees,       // its cell is written; the agreement is under way
  kCommitted,    // the commit has returned
  kLeaves,       // its epoch is over, and it has not left yet
  kLeft,         // it has, and has not asked for the next
  kDone,         // its work is done and its epoch left; it has still to end
  kCount
};
const char* NameOf(Place place);

enum class FaultKind {
  kDeath,         // of a worker, at a place
  kDeaths,        // of several at once
  kPausedWorker,  // stopped, and continued later
  kPausedDaemon,  // hvdd, and so its beats
  kHostCrash,     // hvdd and its shim end: the link does, too
  kHostSilent,    // no more power: nothing says so
  kPartition,     // nothing comes in or out for a while
  kDrain,         // TERM to hvdd
  kFlap,          // another list of hosts
  kBadLaunches,   // workers that cannot be started, for a while
  kUnreachable,   // hosts that do not answer, for a while
  kBrokenLink,    // a worker's link to hvdd ends while it lives on
  kExit,          // a worker ends with code 0 where it is
  kLeavingExit,   // the same, and leaves its epoch before
  kFailure,       // a worker ends with the program's own code
  // Faults of jobs whose hosts are apart.
  kCutLink,  // no data passes between two hosts, for a while or for good
  kBadHost,  // the program fails there between init and sync, for a while or for good
  kCount
};
const char* NameOf(FaultKind kind);

struct Fault {
  FaultKind kind = FaultKind::kDeath;
  double at = 0;                // not before
  Place place = Place::kCount;  // kCount: wherever the worker is
  int passes = 0;               // workers that pass the place first
  int count = 1;                // workers that die together
  double length = 0;            // of a pause, a partition, a while
  bool again = false;           // the member that comes next to the same place dies, too
  bool for_good = false;
};

struct ListedHost {
  std::string name;
  int slots = 1;
};

struct Scenario {
  uint64_t seed = 0;
  std::vector<ListedHost> hosts;  // that there are at all
  int np = 1;
  cli::ElasticOptions options;
  double lease_s = 3;
  double grace_s = 1;
  double start_timeout_s = 3;
  // The program.
  bool inits = true;  // false: it never calls hvd_init
  int steps = 20;
  int commit_every = 2;
  bool checks = false;  // hvd_check_hosts after steps without a commit
  double compute_s = 0.02;
  double start_s = 0.05;      // of a process until hvd_init, at most
  int bug_at = -1;            // this step ends every process with the same code
  bool bug_is_one = false;    // no: only that of the first share of the first host
  int bug_code = 3;           // 0: it gives up without a word
  bool has_place = false;     // its commits tell where they are
  bool commits_anew = false;  // it commits once more where it begins; then they do
  std::vector<Fault> faults;

  // Whether a fault keeps a worker or a host from going on for longer than others wait.
  bool HoldsUp() const;

  static Scenario Draw(uint64_t seed);
  // Small jobs that commit all the time, and whose members die around commits, one after another.
  static Scenario DrawCommits(uint64_t seed);
  // Jobs on hosts of which some cannot send data to one another, or fail as soon as they begin.
  static Scenario DrawApart(uint64_t seed);
  // Jobs like any others, whose program ends with 0 and never calls hvd_init.
  static Scenario DrawWithoutInit(uint64_t seed);
};

// By the script that discovers hosts.
std::string HostsText(const std::vector<ListedHost>& hosts);

}  // namespace hvd::elastic_simulator
