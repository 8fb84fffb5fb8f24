#include "cli/verdict_text.h"

#include <signal.h>

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "cli/ssh_failure.h"

namespace hvd {
namespace {

constexpr size_t kMaxVerdictBytes = 60 * 1024;  // fits one frame
constexpr int kShownHosts = 8;

const std::string& HostName(const JobFacts& facts, int host) {
  return facts.topology.hosts()[host].name;
}

std::string Ranks(const std::vector<int>& ranks) {
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ", FoldNumbers(ranks));
}

// What became of a rank that is not the culprit.
std::string Fate(const JobFacts& facts, int rank, const Verdict& verdict) {
  const RankFact& fact = facts.ranks[rank];
  const std::string because =
      verdict.kind == Verdict::kRank ? absl::StrCat(" because of rank ", verdict.index) : "";
  switch (fact.phase) {
    case RankFact::kPlanned:
      return "never started";
    case RankFact::kRunning:
      return "not known to have ended";
    case RankFact::kLost:
      return absl::StrCat("lost with host ", HostName(facts, facts.topology.place(rank).host));
    case RankFact::kExited:
      break;
  }
  const v1::RankExited& exit = fact.exit;
  if (EndedByStop(fact)) return absl::StrCat("stopped by hvdrun", because);
  // Of one or of several.
  return absl::StrCat(absl::StripPrefix(DescribeExit(exit), "was "),
                      exit.after_abort() ? " afterwards" : "");
}

// "  ranks 0-2,4: stopped by hvdrun because of rank 3", one line a fate; quiet about clean exits.
std::string Others(const JobFacts& facts, const Verdict& verdict) {
  std::map<std::string, std::vector<int>> fates;
  std::map<std::string, std::vector<int>> waits;
  for (int rank = 0; rank < static_cast<int>(facts.ranks.size()); ++rank) {
    if (verdict.kind == Verdict::kRank && rank == verdict.index) continue;
    // The host's own text has said it.
    const std::string& exec_error = facts.ranks[rank].exit.exec_error();
    if (verdict.kind == Verdict::kHost && !exec_error.empty()) continue;
    fates[Fate(facts, rank, verdict)].push_back(rank);
    const v1::RankExited& exit = facts.ranks[rank].exit;
    if (!exit.activity().empty() && exit.after_abort()) waits[exit.activity()].push_back(rank);
  }
  std::string text;
  for (const auto& [activity, ranks] : waits) {
    absl::StrAppend(&text, "  meanwhile ", Ranks(ranks), ": ", activity, "\n");
  }
  for (const auto& [fate, ranks] : fates) {
    absl::StrAppend(&text, "  ", Ranks(ranks), ": ", fate, "\n");
  }
  return text;
}

std::string RankText(const JobFacts& facts, const Verdict& verdict) {
  const RankFact& fact = facts.ranks[verdict.index];
  const v1::RankExited& exit = fact.exit;
  std::string text = absl::StrCat("hvdrun: ", NameRank(facts, verdict.index), " ");
  const bool own_words = fact.broke.empty() || (fact.phase == RankFact::kExited &&
                                                verdict.exit_code != 1 && exit.exit_code() != 1);
  if (fact.early) {
    absl::StrAppend(&text, "exited (code 0) without ",
                    exit.joined() ? "hvd's shutdown" : "hvd's init",
                    " while others still needed it");
  } else if (own_words || fact.broke.empty()) {
    absl::StrAppend(&text, DescribeExit(exit));
  } else {
    absl::StrAppend(&text, "broke its link: ", fact.broke);
  }
  absl::StrAppendFormat(&text, ", %.1f s after the start\n",
                        fact.phase == RankFact::kExited ? fact.ended_s : fact.broke_s);
  if (fact.pid != 0) absl::StrAppend(&text, "  process: pid ", fact.pid, "\n");
  if (!exit.activity().empty()) absl::StrAppend(&text, "  doing: ", exit.activity(), "\n");
  if (exit.last_lines_size() > 0) {
    absl::StrAppend(&text, "  its last lines:\n",
                    QuoteLines(absl::StrJoin(exit.last_lines(), "\n"), 20));
  }
  return text;
}

// Hosts with the same fault and cause are one entry.
std::string HostText(const JobFacts& facts, const Verdict& verdict) {
  const HostFact& culprit = facts.hosts[verdict.index];
  std::vector<std::string> names;
  for (size_t i = 0; i < facts.hosts.size(); ++i) {
    const HostFact& fact = facts.hosts[i];
    if (fact.fault == culprit.fault && fact.cause == culprit.cause) {
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
    if (fact.fault == HostFact::kNone || !other) continue;
    absl::StrAppend(&text, "  also ", HostName(facts, i), ": ", fact.cause, "\n");
    if (!fact.remedy.empty()) absl::StrAppend(&text, "    next: ", fact.remedy, "\n");
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

std::string NameRank(const JobFacts& facts, int rank) {
  return absl::StrCat("rank ", rank, " on ", HostName(facts, facts.topology.place(rank).host));
}

std::string RenderVerdict(const JobFacts& facts, const Verdict& verdict) {
  std::string text;
  switch (verdict.kind) {
    case Verdict::kSuccess:
      return SurvivorText(facts);
    case Verdict::kRank:
      text = RankText(facts, verdict);
      break;
    case Verdict::kHost:
      text = HostText(facts, verdict);
      break;
    case Verdict::kEnding:
      if (facts.ending == Ending::kOutputGone) return "";
      text = absl::StrCat("hvdrun: ", facts.ending_text, "\n");
      break;
  }
  if (AnyRankStarted(facts)) text += Others(facts, verdict);
  text += SurvivorText(facts);
  if (text.size() > kMaxVerdictBytes) {
    text.resize(kMaxVerdictBytes);
    text += "…\n";
  }
  absl::StrAppend(&text, "  exit code ", verdict.exit_code, "\n");
  return text;
}

std::string RenderStates(const JobFacts& facts) {
  size_t width = 4;
  for (const HostShape& host : facts.topology.hosts()) width = std::max(width, host.name.size());
  std::string text = absl::StrFormat("%5s  %-*s  state\n", "rank", width, "host");
  for (int rank = 0; rank < static_cast<int>(facts.ranks.size()); ++rank) {
    const RankFact& fact = facts.ranks[rank];
    if (text.size() > kMaxVerdictBytes) return text + "…\n";
    absl::StrAppendFormat(&text, "%5d  %-*s  %s", rank, width,
                          HostName(facts, facts.topology.place(rank).host), StateName(fact));
    if (fact.phase == RankFact::kRunning) absl::StrAppend(&text, ", pid ", fact.pid);
    if (fact.phase == RankFact::kExited) absl::StrAppend(&text, ", ", DescribeExit(fact.exit));
    text += "\n";
  }
  return text;
}

}  // namespace hvd
