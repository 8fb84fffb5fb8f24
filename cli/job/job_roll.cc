// SPDX-License-Identifier: Apache-2.0
#include "cli/job/job_roll.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace hvd::cli {

JobRoll::JobRoll(JobFacts* facts)
    : facts_(facts),
      output_(static_cast<int>(facts->ranks.size())),
      running_(static_cast<int>(facts->ranks.size())) {}

void JobRoll::AddHost(HostFact fact) {
  facts_->hosts.push_back(std::move(fact));
  launched_all_ = false;
}

void JobRoll::Launched(int host, v1::Containment containment) {
  facts_->hosts[host].phase = HostFact::kLaunched;
  facts_->hosts[host].containment = containment;
  const auto& hosts = facts_->hosts;
  launched_all_ = std::all_of(hosts.begin(), hosts.end(), [](const HostFact& fact) {
    return fact.phase == HostFact::kLaunched || fact.phase == HostFact::kGone;
  });
}

void JobRoll::AddRank(RankFact fact) {
  facts_->ranks.push_back(std::move(fact));
  output_.Add();
  ++running_;
}

void JobRoll::Started(int rank, uint32_t pid) {
  RankFact& fact = facts_->ranks[rank];
  if (fact.phase != RankFact::kPlanned) return;
  fact.phase = RankFact::kRunning;
  fact.pid = pid;
  output_.Started(rank);
}

void JobRoll::Exited(int rank, const v1::RankExited& exit, double now) {
  RankFact& fact = facts_->ranks[rank];
  output_.Started(rank);
  fact.phase = RankFact::kExited;
  fact.exit = exit;
  if (exit.pid() != 0) fact.pid = exit.pid();
  --running_;
  output_.MayFollow(now);
}

void JobRoll::LoseRanks(int host) {
  for (size_t index = 0; index < facts_->ranks.size(); ++index) {
    RankFact& lost = facts_->ranks[index];
    const bool ended = lost.phase == RankFact::kExited || lost.phase == RankFact::kLost;
    if (lost.host != host || ended) continue;
    output_.Lost(static_cast<int>(index));
    lost.phase = RankFact::kLost;
    --running_;
  }
}

void JobRoll::StreamMoved(int rank, bool end, double now) {
  output_.Moved(rank, end, now);
  if (rank < 0 || rank >= static_cast<int>(facts_->ranks.size())) return;
  const auto drained = drained_.find(facts_->ranks[rank].host);
  if (drained != drained_.end()) drained->second = now + kOutputPatienceS;
}

void JobRoll::OutputPaused(bool paused, double now) {
  output_.Pause(paused, now);
  for (auto& [host, until] : drained_) until = now + kOutputPatienceS;
}

void JobRoll::Drain(int host, double now) { drained_[host] = now + kOutputPatienceS; }

bool JobRoll::IsSilent(int host) const {
  for (size_t rank = 0; rank < facts_->ranks.size(); ++rank) {
    if (facts_->ranks[rank].host == host && !output_.Ended(static_cast<int>(rank))) return false;
  }
  return true;
}

double JobRoll::DropDrained(Outbox* outbox, double now) {
  double next = std::numeric_limits<double>::infinity();
  std::erase_if(drained_, [&](const auto& entry) {
    const auto& [host, until] = entry;
    const bool over = IsSilent(host) || (now >= until && !output_.paused());
    if (over) outbox->Drop(host);
    if (!over && !output_.paused()) next = std::min(next, until);
    return over;
  });
  return next;
}

}  // namespace hvd::cli
