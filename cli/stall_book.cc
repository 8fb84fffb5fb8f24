#include "cli/stall_book.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/verdict.h"

namespace hvd {
namespace {

constexpr size_t kMostNames = 6;  // of tensors that wait for the same ranks; as Horovod
constexpr size_t kMostGroups = 8;
constexpr size_t kMostRanks = 16;

// Tensors that wait for the same ranks.
struct Group {
  std::vector<int> missing;
  std::vector<std::string> names;  // the longest waiting first
  double waited_s = 0;
};

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
    }
    std::sort(tensor.have.begin(), tensor.have.end());
    std::sort(tensor.members.begin(), tensor.members.end());
  }
  return merged;
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
  if (std::find(silent.begin(), silent.end(), static_cast<uint32_t>(rank)) != silent.end()) {
    text += "busy; ";
  }
  const bool known = place.local_rank < answer->second.activities_size();
  return text + (known ? answer->second.activities(place.local_rank) : "not known");
}

StallBook::Report StallBook::End(double least_s) {
  asking_ = false;
  std::map<std::vector<int>, Group> groups;
  Report report;
  for (const auto& [key, tensor] : Merge()) {
    const std::vector<int> missing = Missing(tensor);
    if (missing.empty() || tensor.waited_s < least_s) continue;
    Group& group = groups[missing];
    group.missing = missing;
    group.waited_s = std::max(group.waited_s, tensor.waited_s);
    group.names.push_back(
        absl::StrCat("'", key.second, "' (", tensor.what,
                     key.first != 0 ? absl::StrCat(", process set ", key.first) : "", ")"));
    report.waited_s = std::max(report.waited_s, tensor.waited_s);
  }
  size_t told = 0;
  std::vector<int> ranks;
  for (const auto& [missing, group] : groups) {
    if (++told > kMostGroups) break;
    absl::StrAppendFormat(&report.text, "%sstalled for %.0f s: %s wait%s for %s %s",
                          told > 1 ? "\n" : "", group.waited_s, Names(group.names),
                          group.names.size() == 1 ? "s" : "",
                          missing.size() == 1 ? "rank" : "ranks", FoldNumbers(missing));
    ranks.insert(ranks.end(), missing.begin(), missing.end());
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  for (size_t i = 0; i < std::min(ranks.size(), kMostRanks); ++i) {
    absl::StrAppend(&report.text, "\n  ", Doing(ranks[i]));
  }
  if (ranks.size() > kMostRanks) {
    absl::StrAppend(&report.text, "\n  and ", ranks.size() - kMostRanks, " more ranks");
  }
  answers_.clear();
  return report;
}

}  // namespace hvd
