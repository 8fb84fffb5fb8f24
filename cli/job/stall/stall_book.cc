// SPDX-License-Identifier: Apache-2.0
#include "cli/job/stall/stall_book.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/names_apart.h"
#include "base/printable.h"
#include "cli/membership/faults/link_words.h"
#include "cli/report/verdict.h"

namespace hvd::cli {
namespace {

constexpr size_t kMostNames = 6;  // of tensors that wait for the same ranks; as Horovod
constexpr size_t kMostGroups = 8;
constexpr size_t kMostRanks = 16;

std::string Names(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMostNames); ++i) {
    absl::StrAppend(&text, i ? ", " : "", names[i]);
  }
  if (names.size() > kMostNames)
    absl::StrAppend(&text, " and ", names.size() - kMostNames, " more");
  return text;
}

}  // namespace

struct StallBook::Group {
  std::vector<std::string> names;
  double waited_s = 0;
};

void StallBook::Begin() {
  asking_ = true;
  answers_.clear();
}

void StallBook::Answered(int host, const v1::HostPending& pending) {
  if (asking_) answers_[host] = pending;
}

bool StallBook::Complete(const std::vector<int>& hosts) const {
  return std::all_of(hosts.begin(), hosts.end(),
                     [this](int host) { return answers_.count(host) != 0; });
}

std::map<StallBook::Key, StallBook::Tensor> StallBook::Merge() const {
  std::map<Key, Tensor> merged;
  for (const auto& [host, answer] : answers_) {
    for (const v1::WaitingTensor& told : answer.tensors()) {
      Tensor& tensor = merged[{told.set(), told.name()}];
      tensor.what = told.what();
      tensor.waited_s = std::max(tensor.waited_s, told.waited_s());
      tensor.have.insert(tensor.have.end(), told.ranks().begin(), told.ranks().end());
      tensor.members.clear();
      for (const uint32_t member : told.members()) {  // a worker's words
        const bool known = member < static_cast<uint32_t>(topology_->size());
        if (known) tensor.members.push_back(static_cast<int>(member));
      }
    }
  }
  for (auto& [key, tensor] : merged) {
    for (const auto& [host, answer] : answers_) {
      tensor.have.insert(tensor.have.end(), answer.joined().begin(), answer.joined().end());
      for (const uint32_t rank : answer.silent()) {
        if (IsExecuting(host, rank, key.first)) tensor.have.push_back(static_cast<int>(rank));
      }
    }
    std::sort(tensor.have.begin(), tensor.have.end());
    std::sort(tensor.members.begin(), tensor.members.end());
  }
  return merged;
}

// A rank that is busy with a collective of the process set cannot say what it has asked for; it
// will when that is over. Should it not get on, that collective is what is stuck.
bool StallBook::IsExecuting(int host, uint32_t rank, int set) const {
  const auto& work = answers_.at(host).work();
  return std::any_of(work.begin(), work.end(), [&](const v1::RankWork& one) {
    return one.rank() == rank && static_cast<int>(one.set()) == set && one.executes();
  });
}

std::vector<int> StallBook::Missing(const Tensor& tensor) const {
  std::vector<int> members = tensor.members;
  if (members.empty()) {
    members.resize(topology_->size());
    std::iota(members.begin(), members.end(), 0);
  }
  std::vector<int> missing;
  std::set_difference(members.begin(), members.end(), tensor.have.begin(), tensor.have.end(),
                      std::back_inserter(missing));
  return missing;
}

// "rank 3 on host1: outside any collective, last allreduce 'x'; 12 collectives done"
std::string StallBook::Doing(int rank) const {
  const RankPlace& place = topology_->place(rank);
  std::string text = absl::StrCat("rank ", rank, " on ", topology_->hosts()[place.host].name, ": ");
  const auto answer = answers_.find(place.host);
  if (answer == answers_.end()) return text + "its host does not answer";
  const auto& silent = answer->second.silent();
  const bool is_silent =
      std::find(silent.begin(), silent.end(), static_cast<uint32_t>(rank)) != silent.end();
  if (is_silent && !IsHeld(rank)) text += "busy; ";
  const bool known = place.local_rank < answer->second.activities_size();
  return text + (known ? Printable(answer->second.activities(place.local_rank)) : "not known");
}

bool StallBook::IsHeld(int rank) const {
  const auto answer = answers_.find(topology_->place(rank).host);
  if (answer == answers_.end()) return false;
  const auto& held = answer->second.held();
  return std::any_of(held.begin(), held.end(), [rank](const v1::HeldRank& one) {
    return one.has_rank() && one.rank() == static_cast<uint32_t>(rank);
  });
}

double StallBook::HeldFor(const AwaitedRank& awaited) const {
  const auto answer = answers_.find(topology_->place(awaited.rank).host);
  if (answer == answers_.end()) return 0;
  for (const v1::HeldRank& one : answer->second.held()) {
    if (static_cast<int>(one.slot()) == awaited.slot) return one.held_s();
  }
  return 0;
}

// Ranks that are held while others wait for them outside any collective.
void StallBook::TellAwaited(const std::vector<AwaitedRank>& awaited, double least_s,
                            Telling* telling) const {
  Report& report = telling->report;
  for (const AwaitedRank& one : awaited) {
    const double waited_s = std::min(one.waited_s, HeldFor(one));
    if (waited_s < least_s) continue;
    report.waited_s = std::max(report.waited_s, waited_s);
    absl::StrAppendFormat(&report.text, "%sstalled for %.0f s: %s waits for rank %d",
                          report.text.empty() ? "" : "\n", waited_s, one.by, one.rank);
    telling->ranks.push_back(one.rank);
    report.held.push_back(one.rank);
  }
}

StallBook::Groups StallBook::GroupMissing(double least_s, const std::set<int>& but_sets) const {
  Groups groups;
  const std::map<Key, Tensor> merged = Merge();
  std::vector<std::string> names;
  for (const auto& [key, tensor] : merged) names.push_back(key.second);
  const std::vector<std::string> shown = ShownApart(names);
  size_t at = 0;
  for (const auto& [key, tensor] : merged) {
    const std::string& name = shown[at++];
    const std::vector<int> missing = Missing(tensor);
    if (missing.empty() || tensor.waited_s < least_s || but_sets.count(key.first) != 0) continue;
    Group& group = groups[missing];
    group.waited_s = std::max(group.waited_s, tensor.waited_s);
    group.names.push_back(
        absl::StrCat(name, " (", Printable(tensor.what),
                     key.first != 0 ? absl::StrCat(", process set ", key.first) : "", ")"));
  }
  return groups;
}

std::set<int> StallBook::SetsWithMissing(double least_s) const {
  std::set<int> sets;
  for (const auto& [key, tensor] : Merge()) {
    if (!Missing(tensor).empty() && tensor.waited_s >= least_s) sets.insert(key.first);
  }
  return sets;
}

void StallBook::TellMissing(const Groups& groups, Telling* telling) const {
  Report& report = telling->report;
  size_t told = 0;
  for (const auto& [missing, group] : groups) {
    report.waited_s = std::max(report.waited_s, group.waited_s);
    if (++told > kMostGroups) continue;
    absl::StrAppendFormat(&report.text, "%sstalled for %.0f s: %s wait%s for %s %s",
                          report.text.empty() ? "" : "\n", group.waited_s, Names(group.names),
                          group.names.size() == 1 ? "s" : "",
                          missing.size() == 1 ? "rank" : "ranks", FoldNumbers(missing));
    telling->ranks.insert(telling->ranks.end(), missing.begin(), missing.end());
  }
}

// "host1 and host2".
std::string StallBook::Links(const StuckWork& stuck) const {
  std::string text;
  for (size_t i = 0; i < std::min(stuck.links.size(), kMostNames); ++i) {
    const auto& [one, other] = stuck.links[i];
    absl::StrAppend(&text, i > 0 ? ", nor between " : "", topology_->hosts()[one].name, " and ",
                    topology_->hosts()[other].name);
  }
  return text;
}

void StallBook::TellStuck(const StuckWork& stuck, Telling* telling) const {
  std::string& text = telling->report.text;
  const std::string what =
      absl::StrCat(stuck.what.empty() ? "a collective" : Printable(stuck.what),
                   stuck.set != 0 ? absl::StrCat(" (process set ", stuck.set, ")") : "");
  const std::string ranks =
      absl::StrCat(stuck.ranks.size() == 1 ? "rank " : "ranks ", FoldNumbers(stuck.ranks));
  absl::StrAppendFormat(&text, "%sstalled for %.0f s: ", text.empty() ? "" : "\n", stuck.still_s);
  switch (stuck.why) {
    case StuckWork::kStopped:
    case StuckWork::kSilent:
      absl::StrAppend(&text, what, " waits for ", ranks);
      break;
    case StuckWork::kLink:
      absl::StrAppend(&text, "no data passes between ", Links(stuck), " any more, though ",
                      stuck.links.size() == 1 ? "both" : "all", " hosts live: ", what,
                      " waits for it; ", kLinkHint);
      break;
    case StuckWork::kDevice:
      absl::StrAppend(&text, stuck.ranks.size() == 1 ? "the device of " : "the devices of ", ranks,
                      stuck.ranks.size() == 1 ? " does" : " do", " not finish ", what);
      break;
    case StuckWork::kEnds:
      absl::StrAppend(&text, "others wait in join or shutdown for ", ranks);
      break;
    case StuckWork::kUnknown:
      absl::StrAppend(&text, what, " does not go on, and all of ", ranks, " wait in it");
      break;
  }
  telling->ranks.insert(telling->ranks.end(), stuck.ranks.begin(), stuck.ranks.end());
  std::vector<std::pair<int, int>>& cut = telling->report.cut;
  cut.insert(cut.end(), stuck.links.begin(), stuck.links.end());
  telling->report.waited_s = std::max(telling->report.waited_s, stuck.still_s);
}

StallBook::Report StallBook::End(double least_s, const std::vector<AwaitedRank>& awaited) {
  asking_ = false;
  Telling telling;
  // Whoever stopped inside a collective holds up all that is asked for after it; and where ranks
  // are missing, the others do nothing but wait.
  const std::set<int> missing = SetsWithMissing(least_s);
  std::set<int> stuck_sets;
  for (const StuckWork& stuck : FindStuck(answers_, *topology_, least_s)) {
    const bool says_more = stuck.executing || stuck.why == StuckWork::kLink;
    if (!says_more && missing.count(stuck.set) != 0) continue;
    if (stuck.why != StuckWork::kDevice) stuck_sets.insert(stuck.set);
    TellStuck(stuck, &telling);
  }
  TellMissing(GroupMissing(least_s, stuck_sets), &telling);
  TellAwaited(awaited, least_s, &telling);
  std::vector<int>& ranks = telling.ranks;
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  std::vector<int>& held = telling.report.held;
  std::copy_if(ranks.begin(), ranks.end(), std::back_inserter(held), [&](int rank) {
    return IsHeld(rank) && std::find(held.begin(), held.end(), rank) == held.end();
  });
  std::string& text = telling.report.text;
  for (size_t i = 0; i < std::min(ranks.size(), kMostRanks); ++i) {
    absl::StrAppend(&text, "\n  ", Doing(ranks[i]));
  }
  if (ranks.size() > kMostRanks) {
    absl::StrAppend(&text, "\n  and ", ranks.size() - kMostRanks, " more ranks");
  }
  answers_.clear();
  return telling.report;
}

}  // namespace hvd::cli
