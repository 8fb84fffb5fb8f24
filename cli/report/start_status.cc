// SPDX-License-Identifier: Apache-2.0
#include "cli/report/start_status.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/printable.h"

namespace hvd::cli {
namespace {

// The first host that is still at `phase`, and how many more are.
std::string WaitingFor(const JobFacts& facts, HostFact::Phase phase) {
  std::string first;
  int more = -1;
  for (size_t i = 0; i < facts.hosts.size(); ++i) {
    if (facts.hosts[i].phase != phase) continue;
    if (++more == 0) first = facts.hosts[i].name;
  }
  if (first.empty()) return "";
  return absl::StrCat("waiting for ", first, more > 0 ? absl::StrCat(" and ", more, " more") : "");
}

// The first `columns` characters.
std::string Fit(const std::string& text, int columns) {
  std::string fit;
  std::string_view rest = text;
  for (int i = 0; i < columns && !rest.empty(); ++i) fit += TakeCharacter(&rest).bytes;
  return fit;
}

}  // namespace

std::string StartWords(const JobFacts& facts) {
  size_t greeted = 0, launched = 0;
  for (const HostFact& host : facts.hosts) {
    if (host.phase == HostFact::kGone) return "";
    if (host.phase != HostFact::kStarting) ++greeted;
    if (host.phase == HostFact::kLaunched) ++launched;
  }
  const size_t all = facts.hosts.size();
  if (launched == all) return "";
  const bool reaching = greeted < all;
  return absl::StrCat(reaching ? "starting " : "starting ranks on ", reaching ? greeted : launched,
                      "/", all, all == 1 ? " host" : " hosts", "\n",
                      WaitingFor(facts, reaching ? HostFact::kStarting : HostFact::kGreeted));
}

std::string StatusLine(std::string_view start_words, double seconds, int columns) {
  const size_t end = start_words.find('\n');
  std::string line =
      absl::StrFormat("%s · %.1f s", std::string(start_words.substr(0, end)), seconds);
  if (end != start_words.npos)
    absl::StrAppend(&line, " · ", std::string(start_words.substr(end + 1)));
  // The last column stays free: a terminal would begin the next line.
  return Fit(Printable(line), columns - 1);
}

}  // namespace hvd::cli
