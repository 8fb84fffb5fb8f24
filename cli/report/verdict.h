// SPDX-License-Identifier: Apache-2.0
// What happened, and who is to blame. The facts are gathered by driver_state; judging and wording
// them is pure. Times are seconds since the job began.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "cli/membership/actions.h"
#include "hostfile/topology.h"
#include "hvd/v1/link_a.pb.h"

namespace hvd::cli {

// The facts of one member: in a job whose members stay, of one rank.
struct RankFact {
  int rank = -1;  // in the newest epoch that it was proposed for; -1: none yet
  int host = 0;   // index into JobFacts::hosts
  int slot = 0;   // of the host
  int share = 0;  // of the host
  bool past =
      false;  // it is in no epoch that counts for the job's end: another has its place, or none
  enum Phase { kPlanned, kRunning, kExited, kLost } phase = kPlanned;
  uint32_t pid = 0;        // as its host sees it
  v1::RankExited exit;     // when kExited
  uint64_t epoch = 0;      // the newest that it has joined, where that is known
  double grace_s = 0;      // that it has asked for
  bool told_dead = false;  // its death is told, though not its end
  double ended_s = 0;
  double died_s = -1;        // when its host told of its death; its end may be told much later
  bool during_stop = false;  // we had asked its host to stop it
  // The others' error is its doing: it left their epoch in good order while they waited for it, or
  // could not go on.
  bool cause = false;
  bool early = false;  // left with code 0 while others were still running and might wait for it
  std::string broke;   // a process that had joined as this rank broke its link: how
  double broke_s = 0;
  v1::WorkerEnd worker;  // with `broke`, where its pid is set: it died, and its wrapper lived on
  std::string init_failure;  // why hvd_init failed in it, the last time that it was called
  // Others had met it in an epoch before that: since when. 0: none had.
  double init_failed_s = 0;
};

struct HostFact {
  std::string name;
  int ranks = 0;         // that it takes
  double reached_s = 0;  // when hvdrun began to reach it
  bool past = false;     // as of a rank
  enum Phase { kStarting, kGreeted, kLaunched, kGone } phase = kStarting;
  enum Fault { kNone, kNotStarted, kLaunchFailed, kLost } fault = kNone;
  int fault_code = 0;    // exit code that the fault asks for
  std::string cause;     // without the host's name: equal causes are folded
  std::string remedy;    // the next step
  std::string evidence;  // quoted lines
  double fault_s = 0;
  bool fault_late = false;  // the job was being stopped already
  v1::Containment containment = v1::CONTAINMENT_AUTO;
  uint32_t survivors = 0;  // processes that could not be killed
  bool end_known = false;  // nothing more is to be learned of how its daemon, or its ssh, ended
};

// Two hosts between which no data passed, though both lived.
struct LinkFact {
  int host = 0;  // which has said so
  int other = 0;
  uint64_t epoch = 0;
  std::string symptom;  // "cannot connect from …"
};

// Why a job ends when neither a rank nor a host is the reason.
enum class Ending {
  kNone,
  kInterrupted,  // Ctrl-C
  kTerminated,   // SIGTERM
  kHungUp,       // the terminal is gone
  kTimedOut,     // --timeout
  kStalled,      // some ranks waited for longer than the stall check allows
  kNotJoined,    // some ranks wait in hvd_init for others that never come
  kConsoleLost,
  kOutputGone,  // nobody reads our stdout
  kSpawnerLost,
  kPaused,  // hvdrun itself stood still for longer than its hosts wait
  // Endings of jobs whose members come and go.
  kTooFew,      // ranks, for too long
  kStateLost,   // nobody is left who has what an elastic job had committed
  kResetLimit,  // one more epoch than the person allows
  kProgramBug,  // the program fails by itself, wherever it runs
  kNoHosts,     // nobody says which hosts there are
  kSignal,      // ranks have died of a signal that hvdrun has passed on
};

struct JobFacts {
  std::string job;
  Topology topology;            // of the newest epoch that was proposed
  std::vector<RankFact> ranks;  // by member - 1; where members stay, by rank
  std::vector<HostFact> hosts;
  std::vector<LinkFact> cut_links;  // each once; of an elastic job those of the newest epoch
  bool elastic = false;             // members come and go
  std::vector<EpochRecord> epochs;  // that have started, in an elastic job
  Ending ending = Ending::kNone;
  std::string ending_text;
  int ending_signal = 0;    // of Ending::kSignal
  std::set<int> passed_on;  // signals that hvdrun has got and passed on to the ranks
  int ending_rank = -1;     // index of the one that an elastic job ends for; -1: none
  // The output that our stdout or stderr did not get, and why: "cannot write to stdout: …".
  std::vector<std::string> lost_output;
  // The same of the files that the person has asked for: the ranks', job.json, the timeline.
  std::vector<std::string> lost_files;
  double duration_s = 0;
  bool compat_horovod = false;  // the ranks' Python was told that horovod is hvd
  std::string adopted_from;     // the launcher that has started the ranks; empty: hvdrun

  // Returns the index of the member's fact; -1: there is none.
  int IndexOf(uint64_t member) const {
    return member >= 1 && member <= ranks.size() ? static_cast<int>(member) - 1 : -1;
  }
};

// Before anything has happened: a rank each, on its host.
JobFacts FactsOf(const Topology& topology);

struct Verdict {
  enum Kind {
    kSuccess,
    kRank,
    kHost,
    kEnding,
    kLostOutput,  // or lost files: nothing else went wrong
  } kind = kSuccess;
  int index = -1;  // the rank or host to blame
  int exit_code = 0;
};

Verdict Judge(const JobFacts& facts);

// "was killed by signal 9 (Killed)", "exited with code 7", …
std::string DescribeExit(const v1::RankExited& exit);

// The same of a worker behind a wrapper.
std::string DescribeWorkerEnd(const v1::WorkerEnd& worker);

// Whether the process of a rank whose link broke ended by itself, badly, and so says what happened.
bool OwnEndSaysMore(const RankFact& fact);

// Whether the exit is what our stop brings about.
bool EndedByStop(const RankFact& fact);

// "0-2,4" of sorted numbers.
std::string FoldNumbers(const std::vector<int>& numbers);

}  // namespace hvd::cli
