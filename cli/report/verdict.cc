// SPDX-License-Identifier: Apache-2.0
#include "cli/report/verdict.h"

#include <signal.h>
#include <string.h>

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "base/process_end.h"
#include "proto/exit_code.h"

namespace hvd::cli {
namespace {

enum Class { kDeath = 0, kAppError = 1, kEarly = 2, kBrokenLink = 3, kStoppedByUs = 4 };

struct Candidate {
  bool late;  // after the abort had reached its host
  Class type;
  double at_s;
  Verdict verdict;
  auto Order() const { return std::make_tuple(late, type, at_s, verdict.index); }
};

int CodeOf(const v1::RankExited& exit) {
  return exit.signal() != 0 ? 128 + exit.signal() : exit.exit_code();
}

struct BrokenLink {
  Class type;
  int exit_code;
};

// Its own process may say more than the broken link does; else its worker's death does, if that is
// known; if not, the link is the reason.
BrokenLink ReasonOf(const RankFact& fact) {
  if (OwnEndSaysMore(fact)) {
    return {fact.exit.signal() != 0 ? kDeath : kAppError, CodeOf(fact.exit)};
  }
  if (fact.worker.pid() == 0) return {kBrokenLink, 1};
  if (fact.worker.signal() != 0) return {kDeath, 128 + fact.worker.signal()};
  return {kAppError, std::max(fact.worker.exit_code(), 1)};
}

void AddRank(int rank, const RankFact& fact, std::vector<Candidate>* candidates) {
  if (fact.past) return;
  const bool exited = fact.phase == RankFact::kExited;
  if (!fact.broke.empty()) {
    const BrokenLink reason = ReasonOf(fact);
    candidates->push_back(
        {false, reason.type, fact.broke_s, {Verdict::kRank, rank, reason.exit_code}});
    return;
  }
  if (fact.init_failed_s > 0) {
    const int code = exited && !EndedByStop(fact) ? CodeOf(fact.exit) : 1;
    candidates->push_back(
        {false, kAppError, fact.init_failed_s, {Verdict::kRank, rank, code != 0 ? code : 1}});
    return;
  }
  if (!exited) return;
  const int code = CodeOf(fact.exit);
  if (code == 0 && !fact.early) return;
  const Class type = EndedByStop(fact)         ? kStoppedByUs
                     : fact.early              ? kEarly
                     : fact.exit.signal() != 0 ? kDeath
                                               : kAppError;
  // The abort is its own doing, however late it ends itself: its exception may take longer to the
  // end of its process than the others'.
  const bool late = fact.exit.after_abort() && (!fact.cause || type == kStoppedByUs);
  candidates->push_back({late, type, fact.ended_s, {Verdict::kRank, rank, code == 0 ? 1 : code}});
}

void AddHost(int host, const HostFact& fact, std::vector<Candidate>* candidates) {
  if (fact.fault == HostFact::kNone || fact.past) return;
  const Class type = fact.fault == HostFact::kLost ? kDeath : kAppError;
  candidates->push_back(
      {fact.fault_late, type, fact.fault_s, {Verdict::kHost, host, fact.fault_code}});
}

int EndingCode(const JobFacts& facts) {
  if (facts.ending_rank >= 0) {
    const RankFact& rank = facts.ranks[facts.ending_rank];
    if (!rank.broke.empty()) return ReasonOf(rank).exit_code;
    if (rank.phase == RankFact::kExited && CodeOf(rank.exit) != 0) return CodeOf(rank.exit);
  }
  switch (facts.ending) {
    case Ending::kNone:
      return 0;
    case Ending::kInterrupted:
      return 128 + SIGINT;
    case Ending::kTerminated:
      return 128 + SIGTERM;
    case Ending::kHungUp:
      return 128 + SIGHUP;
    case Ending::kSignal:
      return 128 + facts.ending_signal;
    case Ending::kOutputGone:
      return 128 + SIGPIPE;
    case Ending::kTimedOut:
    case Ending::kStalled:
      return kExitTimeout;
    case Ending::kNotJoined:
    case Ending::kConsoleLost:
    case Ending::kSpawnerLost:
    case Ending::kPaused:
    case Ending::kTooFew:
    case Ending::kStateLost:
    case Ending::kResetLimit:
    case Ending::kNoHosts:
      return kExitLauncher;
    case Ending::kProgramBug:  // as the program says itself
      return kExitBroken;
  }
  return kExitLauncher;
}

}  // namespace

JobFacts FactsOf(const Topology& topology) {
  JobFacts facts;
  facts.topology = topology;
  for (const HostShape& shape : topology.hosts()) {
    HostFact& host = facts.hosts.emplace_back();
    host.name = shape.name;
    host.ranks = shape.ranks;
  }
  for (int rank = 0; rank < topology.size(); ++rank) {
    RankFact& fact = facts.ranks.emplace_back();
    fact.rank = rank;
    fact.host = topology.place(rank).host;
    fact.slot = fact.share = topology.place(rank).local_rank;
  }
  return facts;
}

Verdict Judge(const JobFacts& facts) {
  if (facts.ending != Ending::kNone) return {Verdict::kEnding, -1, EndingCode(facts)};
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < facts.ranks.size(); ++i) AddRank(i, facts.ranks[i], &candidates);
  for (size_t i = 0; i < facts.hosts.size(); ++i) AddHost(i, facts.hosts[i], &candidates);
  const auto first = std::min_element(
      candidates.begin(), candidates.end(),
      [](const Candidate& a, const Candidate& b) { return a.Order() < b.Order(); });
  // A rank that left early with code 0 is a fault only if somebody else failed for it, or was
  // refused an epoch for it, whatever it made of that.
  const bool all_early = std::all_of(candidates.begin(), candidates.end(),
                                     [](const Candidate& c) { return c.type == kEarly; });
  const bool any_refused =
      std::any_of(facts.ranks.begin(), facts.ranks.end(),
                  [](const RankFact& rank) { return !rank.past && rank.exit.refused(); });
  if (candidates.empty() || (all_early && !any_refused)) {
    if (facts.lost_output.empty() && facts.lost_files.empty()) return {};
    return {Verdict::kLostOutput, -1, kExitBroken};
  }
  return first->verdict;
}

std::string DescribeWorkerEnd(const v1::WorkerEnd& worker) {
  if (!worker.known()) return "died";
  v1::RankExited end;
  end.set_exit_code(worker.exit_code());
  end.set_signal(worker.signal());
  end.set_core_dumped(worker.core_dumped());
  const bool silent = worker.signal() == 0 && worker.exit_code() == 0;
  return absl::StrCat(DescribeExit(end), silent ? " without hvd's shutdown" : "");
}

bool OwnEndSaysMore(const RankFact& fact) {
  if (fact.phase != RankFact::kExited || CodeOf(fact.exit) == 0 || EndedByStop(fact)) return false;
  if (!fact.during_stop || fact.exit.out_of_memory()) return true;
  // It is not known to have heard of the abort, since its link was gone. A wrapper may also answer
  // our TERM by an exit code of its own.
  return fact.worker.pid() == 0 && fact.exit.signal() != SIGTERM && fact.exit.signal() != SIGKILL;
}

std::string DescribeExit(const v1::RankExited& exit) {
  if (!exit.exec_error().empty()) {
    return absl::StrCat("could not be started: ", Printable(exit.exec_error()));
  }
  if (exit.signal() == 0) return absl::StrCat("exited with code ", exit.exit_code());
  return absl::StrCat(DescribeKill(exit.signal()),
                      exit.out_of_memory() ? ": out of memory, by the kernel's OOM killer" : "",
                      exit.core_dumped() ? ", core dumped" : "");
}

bool EndedByStop(const RankFact& fact) {
  const v1::RankExited& exit = fact.exit;
  const bool after_abort = exit.after_abort() || fact.init_failed_s > 0;
  return fact.during_stop && after_abort && !exit.out_of_memory() &&
         (exit.signal() == SIGTERM || exit.signal() == SIGKILL);
}

std::string FoldNumbers(const std::vector<int>& numbers) {
  std::string folded;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    absl::StrAppend(&folded, folded.empty() ? "" : ",", numbers[i]);
    if (last > i) absl::StrAppend(&folded, last == i + 1 ? "," : "-", numbers[last]);
    i = last + 1;
  }
  return folded;
}

}  // namespace hvd::cli
