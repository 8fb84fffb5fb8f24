// SPDX-License-Identifier: Apache-2.0
#include "cli/report/verdict_text.h"

#include <signal.h>

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/printable.h"
#include "cli/membership/faults/link_words.h"
#include "cli/reach/ssh_failure.h"
#include "cli/report/verdict_advice.h"

namespace hvd::cli {
namespace {

constexpr size_t kMaxVerdictBytes = 60 * 1024;  // fits one frame
constexpr int kShownHosts = 8;
constexpr size_t kShownFiles = 4;

const std::string& HostName(const JobFacts& facts, int host) { return facts.hosts[host].name; }

std::string Ranks(const JobFacts& facts, const std::vector<int>& indices) {
  std::vector<int> ranks;
  for (const int index : indices) ranks.push_back(facts.ranks[index].rank);
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ", FoldNumbers(ranks));
}

// Indices of the ranks that count for the job's end, by rank.
std::vector<int> InOrder(const JobFacts& facts) {
  std::vector<int> order;
  for (int index = 0; index < static_cast<int>(facts.ranks.size()); ++index) {
    if (!facts.ranks[index].past && facts.ranks[index].rank >= 0) order.push_back(index);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&facts](int a, int b) { return facts.ranks[a].rank < facts.ranks[b].rank; });
  return order;
}

// Says what became of ranks that are not the culprit, behind their numbers: "were stopped", "has
// exited".
std::string Fate(const JobFacts& facts, int rank, const Verdict& verdict, bool several) {
  const RankFact& fact = facts.ranks[rank];
  const char* was = several ? "were " : "was ";
  switch (fact.phase) {
    case RankFact::kPlanned:
      return "never started";
    case RankFact::kRunning:
      return several ? "are not known to have ended" : "is not known to have ended";
    case RankFact::kLost:
      return absl::StrCat(was, "lost with host ", HostName(facts, fact.host));
    case RankFact::kExited:
      break;
  }
  const v1::RankExited& exit = fact.exit;
  if (EndedByStop(fact)) {
    return absl::StrCat(
        was, "stopped",
        verdict.kind == Verdict::kRank
            ? absl::StrCat(" because rank ", facts.ranks[verdict.index].rank, " failed")
            : "");
  }
  std::string text = DescribeExit(exit);
  if (absl::StartsWith(text, "was ")) text = absl::StrCat(was, text.substr(4));
  return absl::StrCat(text, exit.after_abort() ? " afterwards" : "");
}

// "  ranks 0-2,4 were stopped because rank 3 failed", one line a fate; quiet about clean exits.
std::string Others(const JobFacts& facts, const Verdict& verdict) {
  std::map<std::string, std::vector<int>> fates;  // in words of one rank
  std::map<std::string, std::vector<int>> waits;
  for (const int rank : InOrder(facts)) {
    if (verdict.kind == Verdict::kRank && rank == verdict.index) continue;
    // The host's own text has said it.
    const std::string& exec_error = facts.ranks[rank].exit.exec_error();
    if (verdict.kind == Verdict::kHost && !exec_error.empty()) continue;
    fates[Fate(facts, rank, verdict, false)].push_back(rank);
    const v1::RankExited& exit = facts.ranks[rank].exit;
    if (!exit.activity().empty() && exit.after_abort()) {
      waits[Printable(exit.activity())].push_back(rank);
    }
  }
  std::string text;
  for (const auto& [activity, ranks] : waits) {
    absl::StrAppend(&text, "  meanwhile ", Ranks(facts, ranks), ": ", activity, "\n");
  }
  for (const auto& [fate, ranks] : fates) {
    absl::StrAppend(&text, "  ", Ranks(facts, ranks), " ",
                    Fate(facts, ranks.front(), verdict, ranks.size() > 1), "\n");
  }
  return text;
}

// Tells of a worker that is not the process which was started, and died first.
std::string WorkerText(const RankFact& fact) {
  const std::string wrapper = Printable(fact.worker.wrapper());
  return absl::StrCat("its worker (pid ", fact.worker.pid(), ") ", DescribeWorkerEnd(fact.worker),
                      "; its wrapper ", wrapper, wrapper.empty() ? "" : " ", "(pid ", fact.pid,
                      ") lived on");
}

// "  it was pid 142 there, waiting in allreduce 'x'; 3 collectives done"
std::string WhatItWas(const RankFact& fact) {
  const std::string activity = Printable(fact.exit.activity());
  if (fact.pid == 0 && activity.empty()) return "";
  return absl::StrCat("  it was ", fact.pid != 0 ? absl::StrCat("pid ", fact.pid, " there") : "",
                      fact.pid != 0 && !activity.empty() ? ", " : "", activity, "\n");
}

std::string LastLines(const v1::RankExited& exit) {
  if (exit.last_lines_size() == 0) return "";
  return absl::StrCat("  its last lines:\n",
                      QuoteLines(absl::StrJoin(exit.last_lines(), "\n"), 20));
}

// Seconds after the start.
double WhenIt(const RankFact& fact, bool own_end) {
  if (fact.init_failed_s > 0) return fact.init_failed_s;
  return own_end && fact.phase == RankFact::kExited ? fact.ended_s : fact.broke_s;
}

std::string RankText(const JobFacts& facts, const Verdict& verdict) {
  const RankFact& fact = facts.ranks[verdict.index];
  const v1::RankExited& exit = fact.exit;
  const std::string name = NameRank(facts, verdict.index);
  const bool own_end = fact.broke.empty() || OwnEndSaysMore(fact);
  std::string text = absl::StrCat("hvdrun: ", name);
  if (fact.init_failed_s > 0 && (fact.phase != RankFact::kExited || EndedByStop(fact))) {
    absl::StrAppend(&text, " could not initialise hvd");
  } else if (fact.early) {
    absl::StrAppend(&text, " exited (code 0) without ",
                    exit.joined() ? "hvd's shutdown" : "hvd's init",
                    " while others still needed it");
  } else if (own_end) {
    absl::StrAppend(&text, " ", DescribeExit(exit));
  } else if (fact.worker.pid() != 0) {
    absl::StrAppend(&text, ": ", WorkerText(fact));
  } else {
    absl::StrAppend(&text, " ",
                    Printable(std::string(absl::StripPrefix(fact.broke, absl::StrCat(name, " ")))));
  }
  absl::StrAppendFormat(&text, ", %.1f s after the start\n", WhenIt(fact, own_end));
  if (!fact.init_failure.empty()) {
    absl::StrAppend(&text, "  its hvd_init failed: ", Printable(fact.init_failure), "\n");
  }
  text += WhatItWas(fact);
  if (own_end && fact.worker.pid() != 0) {
    absl::StrAppend(&text, "  its worker (pid ", fact.worker.pid(), ") ",
                    DescribeWorkerEnd(fact.worker), " before\n");
  }
  return text + LastLines(exit);
}

// Returns the last lines of the rank that an ending was seen by.
std::string LastWords(const JobFacts& facts) {
  return facts.ending_rank < 0 ? "" : LastLines(facts.ranks[facts.ending_rank].exit);
}

// Hosts with the same fault and cause are one entry.
std::string HostText(const JobFacts& facts, const Verdict& verdict) {
  const HostFact& culprit = facts.hosts[verdict.index];
  std::vector<std::string> names;
  for (size_t i = 0; i < facts.hosts.size(); ++i) {
    const HostFact& fact = facts.hosts[i];
    if (fact.fault == culprit.fault && fact.cause == culprit.cause && !fact.past) {
      names.push_back(HostName(facts, i));
    }
  }
  const size_t all = names.size();
  if (all > kShownHosts) names.resize(kShownHosts);
  std::string text =
      culprit.fault == HostFact::kLost ? "hvdrun: lost " : "hvdrun: cannot start on ";
  absl::StrAppend(&text, all == 1 ? "host " : "hosts ", absl::StrJoin(names, ", "));
  if (all > names.size()) absl::StrAppend(&text, " and ", all - names.size(), " more");
  absl::StrAppend(&text, ": ", culprit.cause, "\n", culprit.evidence);
  if (!culprit.remedy.empty()) absl::StrAppend(&text, "  next: ", culprit.remedy, "\n");
  for (size_t i = 0; i < facts.hosts.size(); ++i) {
    const HostFact& fact = facts.hosts[i];
    const bool other = fact.fault != culprit.fault || fact.cause != culprit.cause;
    if (fact.fault == HostFact::kNone || fact.past || !other) continue;
    absl::StrAppend(&text, "  also ", HostName(facts, i), ": ", fact.cause, "\n");
    if (!fact.remedy.empty()) absl::StrAppend(&text, "    next: ", fact.remedy, "\n");
  }
  return text;
}

// "  no data passes between host0 and host1: cannot connect from …"
std::string CutLinks(const JobFacts& facts) {
  std::string text;
  for (const LinkFact& link : facts.cut_links) {
    absl::StrAppend(&text, "  ",
                    SayLink(HostName(facts, link.host), HostName(facts, link.other), link.symptom),
                    "\n");
  }
  return text;
}

bool AnyRankStarted(const JobFacts& facts) {
  return std::any_of(facts.ranks.begin(), facts.ranks.end(),
                     [](const RankFact& rank) { return rank.phase != RankFact::kPlanned; });
}

std::string SurvivorText(const JobFacts& facts) {
  std::string text;
  for (size_t i = 0; i < facts.hosts.size(); ++i) {
    if (facts.hosts[i].survivors == 0) continue;
    absl::StrAppend(&text, "  host ", HostName(facts, i), ": ", facts.hosts[i].survivors,
                    " processes could not be killed (in uninterruptible sleep?); look there\n");
  }
  return text;
}

// Lists the outputs that were asked for and are not whole. Each was told when it was lost.
std::string LossText(const JobFacts& facts, bool first) {
  std::vector<std::string> losses = facts.lost_output;
  const size_t files = facts.lost_files.size();
  const size_t shown = files > kShownFiles ? kShownFiles : files;
  losses.insert(losses.end(), facts.lost_files.begin(), facts.lost_files.begin() + shown);
  if (files > shown) losses.push_back(absl::StrCat("and ", files - shown, " more files"));
  std::string text;
  for (const std::string& lost : losses) {
    absl::StrAppend(&text, first && text.empty() ? "hvdrun: " : "  also: ", lost, "\n");
  }
  return text;
}

const char* StateName(const RankFact& fact) {
  switch (fact.phase) {
    case RankFact::kPlanned:
      return "not started";
    case RankFact::kRunning:
      return "running";
    case RankFact::kExited:
      return "ended";
    case RankFact::kLost:
      return "lost";
  }
  return "?";
}

}  // namespace

std::string NameRank(const JobFacts& facts, int index) {
  const RankFact& fact = facts.ranks[index];
  const std::string& host = HostName(facts, fact.host);
  if (fact.rank < 0) return absl::StrCat("a new rank on ", host, " (slot ", fact.share, ")");
  return absl::StrCat("rank ", fact.rank, " on ", host);
}

std::string SayCleanExit(const JobFacts& facts, int index, const v1::RankExited& exit) {
  absl::string_view when = " without hvd's shutdown";
  if (exit.left()) when = " after hvd's shutdown";
  if (!exit.joined()) when = " without hvd's init";
  return absl::StrCat(NameRank(facts, index), " exited (code 0)", when);
}

std::string RenderVerdict(const JobFacts& facts, const Verdict& verdict) {
  std::string text;
  switch (verdict.kind) {
    case Verdict::kSuccess:
      return SurvivorText(facts);
    case Verdict::kRank:
      text = absl::StrCat(RankText(facts, verdict), CutLinks(facts));
      break;
    case Verdict::kHost:
      text = HostText(facts, verdict);
      break;
    case Verdict::kEnding:
      if (facts.ending == Ending::kOutputGone) return "";
      text = absl::StrCat("hvdrun: ", facts.ending_text, "\n", LastWords(facts));
      break;
    case Verdict::kLostOutput:
      break;
  }
  if (verdict.kind != Verdict::kLostOutput && AnyRankStarted(facts)) text += Others(facts, verdict);
  text += LossText(facts, text.empty());
  text += SurvivorText(facts);
  if (text.size() > kMaxVerdictBytes) {
    text.resize(kMaxVerdictBytes);
    text += "…\n";
  }
  const std::string next = NextStep(facts, verdict);
  if (!next.empty()) absl::StrAppend(&text, "  next: ", next, "\n");
  absl::StrAppend(&text, "  exit code ", verdict.exit_code, "\n");
  return text;
}

std::string RenderStates(const JobFacts& facts) {
  size_t width = 4;
  for (const HostFact& host : facts.hosts) width = std::max(width, host.name.size());
  std::string text = absl::StrFormat("%5s  %-*s  state\n", "rank", width, "host");
  for (const int index : InOrder(facts)) {
    const RankFact& fact = facts.ranks[index];
    if (text.size() > kMaxVerdictBytes) return text + "…\n";
    absl::StrAppendFormat(&text, "%5d  %-*s  %s", fact.rank, width, HostName(facts, fact.host),
                          StateName(fact));
    if (fact.phase == RankFact::kRunning) absl::StrAppend(&text, ", pid ", fact.pid);
    if (fact.phase == RankFact::kExited) absl::StrAppend(&text, ", ", DescribeExit(fact.exit));
    text += "\n";
  }
  return text;
}

}  // namespace hvd::cli
