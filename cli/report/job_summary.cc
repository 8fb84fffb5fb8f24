// SPDX-License-Identifier: Apache-2.0
#include "cli/report/job_summary.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/report/verdict_text.h"

namespace hvd::cli {
namespace {

// Below these, waiting times differ by chance.
constexpr double kLeastLagS = 0.01;
constexpr double kLeastLagOfWait = 0.2;

struct Totals {
  int ranks = 0;  // that have counted
  uint64_t calls = 0, bytes = 0;
  double wait_s = 0;
};

double WaitOf(const RankFact& fact) { return fact.exit.counts().wait_ns() * 1e-9; }

Totals Sum(const JobFacts& facts) {
  Totals totals;
  for (const RankFact& fact : facts.ranks) {
    if (fact.exit.counts().calls() == 0) continue;
    ++totals.ranks;
    totals.calls += fact.exit.counts().calls();
    totals.bytes += fact.exit.counts().bytes();
    totals.wait_s += WaitOf(fact);
  }
  return totals;
}

std::string Amount(double bytes) {
  static constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  size_t unit = 0;
  for (; bytes >= 1000 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1000;
  return absl::StrFormat("%.4g %s", bytes, kUnits[unit]);
}

}  // namespace

std::optional<SlowestRank> FindSlowest(const JobFacts& facts) {
  const Totals totals = Sum(facts);
  if (totals.ranks < 2) return std::nullopt;
  SlowestRank slowest = {-1, 0, 0};
  for (size_t rank = 0; rank < facts.ranks.size(); ++rank) {
    if (facts.ranks[rank].exit.counts().calls() == 0) continue;
    const double waited_s = WaitOf(facts.ranks[rank]);
    if (slowest.rank >= 0 && waited_s >= slowest.waited_s) continue;
    slowest.rank = static_cast<int>(rank);
    slowest.waited_s = waited_s;
  }
  slowest.others_s = (totals.wait_s - slowest.waited_s) / (totals.ranks - 1);
  const double lag_s = slowest.others_s - slowest.waited_s;
  if (lag_s < kLeastLagS || lag_s < kLeastLagOfWait * slowest.others_s) return std::nullopt;
  return slowest;
}

std::string RenderSummary(const JobFacts& facts) {
  const Totals totals = Sum(facts);
  if (totals.ranks == 0) return "";
  std::string text = absl::StrFormat(
      "%d collectives and %s a rank, %.3g s waiting for others on average",
      totals.calls / totals.ranks, Amount(static_cast<double>(totals.bytes) / totals.ranks),
      totals.wait_s / totals.ranks);
  if (const std::optional<SlowestRank> slowest = FindSlowest(facts)) {
    absl::StrAppendFormat(&text,
                          "\n  slowest: %s; the others waited %.3g s on average, it waited %.3g s",
                          NameRank(facts, slowest->rank), slowest->others_s, slowest->waited_s);
  }
  return text;
}

Json SummaryJson(const JobFacts& facts) {
  const Totals totals = Sum(facts);
  Json json = {
      {"collectives", totals.calls}, {"bytes", totals.bytes}, {"wait_s", Rounded(totals.wait_s)}};
  if (const std::optional<SlowestRank> slowest = FindSlowest(facts)) {
    json["slowest"] = {{"rank", facts.ranks[slowest->rank].rank},
                       {"waited_s", Rounded(slowest->waited_s)},
                       {"others_s", Rounded(slowest->others_s)}};
  }
  // How much later than the rank that was there first each rank came, over all collectives.
  double longest_s = 0;
  for (const RankFact& fact : facts.ranks) longest_s = std::max(longest_s, WaitOf(fact));
  Json& lags = json["lag_s"] = Json::array();
  for (const RankFact& fact : facts.ranks) {
    const bool counted = fact.exit.counts().calls() != 0;
    lags.push_back(counted ? Json(Rounded(longest_s - WaitOf(fact))) : Json());
  }
  return json;
}

}  // namespace hvd::cli
