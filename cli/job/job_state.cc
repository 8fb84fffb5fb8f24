// SPDX-License-Identifier: Apache-2.0
#include "cli/job/job_state.h"

#include "absl/strings/str_cat.h"
#include "base/printable.h"

namespace hvd {
namespace {

JobFacts FactsAtStart(const Topology& topology, const JobPolicy& policy) {
  JobFacts facts = FactsOf(topology);
  facts.compat_horovod = policy.compat_horovod;
  facts.adopted_from = policy.adopted_from;
  facts.elastic = policy.elastic.has_value();
  return facts;
}

}  // namespace

JobState::JobState(const Topology& topology, const JobPolicy& policy, double now)
    : policy_(policy),
      facts_(FactsAtStart(topology, policy)),
      epochs_(&facts_, &outbox_),
      stalls_(&facts_.topology, policy.stall, &outbox_),
      output_(topology.size()),
      started_(now),
      running_(topology.size()) {
  if (policy_.elastic) {
    ElasticOptions options = *policy_.elastic;
    options.start_timeout_s = policy_.start_timeout_s;
    membership_.emplace(policy_.np, options, policy_.stdin_rank);
  }
  Settle(now);
}

void JobState::Heard(int host, const v1::Event& event, double now) {
  switch (event.kind_case()) {
    case v1::Event::kLaunched:
      return OnLaunched(host, event.launched(), now);
    case v1::Event::kLaunchFailed:
      return OnLaunchFailed(host, event.launch_failed(), now);
    case v1::Event::kRankStarted:
      return OnStarted(event.rank_started());
    case v1::Event::kMemberDied:
      return OnDied(host, event.member_died(), now);
    case v1::Event::kRankExited:
      return OnExited(event.rank_exited(), now);
    case v1::Event::kHostAddresses:
      if (!stopping_.begun) epochs_.Collect(host, event.host_addresses());
      return Settle(now);
    case v1::Event::kHostReady:
      return OnReady(host, event.host_ready().epoch(), now);
    case v1::Event::kStopped:
      return OnStopped(host, event.stopped(), now);
    case v1::Event::kNotice:
      return outbox_.Say(
          absl::StrCat("host ", HostName(host), ": ", Printable(event.notice().text())));
    case v1::Event::kRankBroke:
      return OnBroke(event.rank_broke(), now);
    case v1::Event::kRankInitFailed:
      return OnInitFailed(event.rank_init_failed(), now);
    case v1::Event::kRankJoined:
      return OnJoined(event.rank_joined(), now);
    case v1::Event::kMemberWithdrew:
      epochs_.Withdrawn(event.member_withdrew());
      return Settle(now);
    case v1::Event::kMemberStands:
      if (membership_) return MembersEvent(host, event, now);
      if (!stopping_.begun) epochs_.Stands(event.member_stands());
      return;
    case v1::Event::kHostQuiet:
    case v1::Event::kDrainAsked:
      return MembersEvent(host, event, now);
    case v1::Event::kStallDue:
      if (!stopping_.begun) stalls_.Due(now);
      return Settle(now);
    case v1::Event::kHostPending:
      host = members().PlaceOf(host);
      if (host >= 0 && stalls_.Answered(host, event.host_pending(), RunningHosts())) TellStall(now);
      return;
    case v1::Event::kRankLeft:
      return OnLeft(host, event.rank_left(), now);
    case v1::Event::kGraceAsked:
      return OnGraceAsked(event.grace_asked());
    case v1::Event::kLeaseEnded:
      return OnLeaseEnded(host, now);
    case v1::Event::kStdinCredit:  // the driver's own, and so is the next
    case v1::Event::kTimelineAsked:
    case v1::Event::KIND_NOT_SET:
      return;
  }
}

void JobState::StreamMoved(int index, bool end, double now) {
  output_.Moved(index, end, now);
  const bool known = index >= 0 && index < static_cast<int>(facts_.ranks.size());
  if (known && !drained_hosts_.empty()) {
    const auto drained = drained_hosts_.find(facts_.ranks[index].host);
    if (drained != drained_hosts_.end()) drained->second = now + kOutputPatienceS;
  }
  if (end) Settle(now);
}

void JobState::OutputPaused(bool paused, double now) {
  output_.Pause(paused, now);
  for (auto& [host, until] : drained_hosts_) until = now + kOutputPatienceS;
  Settle(now);
}

}  // namespace hvd
