// SPDX-License-Identifier: Apache-2.0
#include "cli/membership/next_epoch.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace hvd::cli {
namespace {

constexpr int kNew = std::numeric_limits<int>::max();

int OrderOf(const Candidate& member) { return member.last_rank < 0 ? kNew : member.last_rank; }

int OldestRank(const CandidateHost& host) {
  int oldest = kNew;
  for (const Candidate& member : host.members) oldest = std::min(oldest, OrderOf(member));
  return oldest;
}

// Survivors keep their order; who was not there before comes behind them, on its host and with its
// host. Rank 0 has the state if anybody does: where the oldest host lacks it, the oldest that has
// it comes before.
void SortRanks(NextEpoch* next) {
  std::erase_if(next->hosts, [](const CandidateHost& host) { return host.members.empty(); });
  if (next->hosts.empty()) return;
  for (CandidateHost& host : next->hosts) {
    std::sort(host.members.begin(), host.members.end(), [](const auto& a, const auto& b) {
      return std::make_tuple(OrderOf(a), a.share, a.member) <
             std::make_tuple(OrderOf(b), b.share, b.member);
    });
  }
  const auto place = [](const CandidateHost& host) {
    return std::make_tuple(OldestRank(host), host.host);
  };
  std::sort(next->hosts.begin(), next->hosts.end(),
            [&place](const auto& a, const auto& b) { return place(a) < place(b); });
  const bool back = next->rolls_back || OldestRank(next->hosts.front()) == kNew;
  if (!back || next->resume_commit == 0) return;
  const auto holder = std::find_if(
      next->hosts.begin(), next->hosts.end(),
      [next](const CandidateHost& host) { return host.kept.Has(next->resume_commit); });
  if (holder != next->hosts.end()) std::rotate(next->hosts.begin(), holder, holder + 1);
}

// Writes what the ranks are told of their state, the same for all.
class StateWords {
 public:
  StateWords(const NextEpoch& next, v1::EpochPropose* propose)
      : next_(next), propose_(*propose), back_(next.rolls_back || !AnySurvivor()) {}

  void Write() {
    int rank = 0;
    int root = -1, holder = -1;
    for (const CandidateHost& host : next_.hosts) {
      for (const Candidate& member : host.members) {
        const bool survives = member.last_rank >= 0;
        const bool needy = back_ ? !host.kept.Has(next_.resume_commit) : !survives;
        if (needy) propose_.add_needy(rank);
        if (!needy && survives && root < 0) root = rank;
        if (!needy && holder < 0) holder = rank;
        propose_.set_survivors(propose_.survivors() + survives);
        ++rank;
      }
    }
    propose_.set_rolls_back(back_ && (next_.rolls_back || next_.resume_commit > 0));
    propose_.set_resume_commit(next_.resume_commit);
    propose_.set_root(root >= 0 ? root : holder);
    if (propose_.root() < 0) BeginAnew(rank);
  }

 private:
  bool AnySurvivor() const {
    return std::any_of(next_.hosts.begin(), next_.hosts.end(),
                       [](const CandidateHost& host) { return OldestRank(host) != kNew; });
  }
  // Nobody has anything that was committed: all take what the first has.
  void BeginAnew(int ranks) {
    propose_.set_root(0);
    propose_.set_resume_commit(0);
    propose_.set_rolls_back(false);
    propose_.clear_needy();
    for (int rank = 1; rank < ranks; ++rank) propose_.add_needy(rank);
  }

  const NextEpoch& next_;
  v1::EpochPropose& propose_;
  const bool back_;
};

}  // namespace

uint64_t ResumeCommit(const std::vector<uint64_t>& newest) {
  uint64_t most = 0;
  for (const uint64_t commit : newest) most = std::max(most, commit);
  uint64_t resume = most;
  for (const uint64_t commit : newest) {
    if (commit > 0 && commit + 1 >= most) resume = std::min(resume, commit);
  }
  return resume;
}

bool HasState(const NextEpoch& next) {
  return std::any_of(next.hosts.begin(), next.hosts.end(), [&next](const CandidateHost& host) {
    return host.kept.Has(next.resume_commit) || (!next.rolls_back && OldestRank(host) != kNew);
  });
}

v1::EpochPropose ProposeNext(NextEpoch next) {
  SortRanks(&next);
  v1::EpochPropose propose;
  propose.set_epoch(next.number);
  for (const CandidateHost& host : next.hosts) {
    v1::EpochHost& listed = *propose.add_hosts();
    listed.set_host(host.host);
    listed.set_name(host.name);
    listed.set_void_state(!host.kept.Has(next.resume_commit));
    for (const Candidate& member : host.members) {
      v1::Seat& seat = *listed.add_members();
      seat.set_member(member.member);
      seat.set_slot(member.slot);
      seat.set_share(member.share);
    }
  }
  StateWords(next, &propose).Write();
  return propose;
}

}  // namespace hvd::cli
