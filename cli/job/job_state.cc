// SPDX-License-Identifier: Apache-2.0
#include "cli/job/job_state.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/printable.h"
#include "cli/job/changing_crew.h"
#include "cli/job/fixed_crew.h"

namespace hvd::cli {
namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();
constexpr double kDrainStoppedS = 0.3;  // output after a stop

JobFacts FactsAtStart(const Topology& topology, const JobPolicy& policy) {
  JobFacts facts = FactsOf(topology);
  facts.compat_horovod = policy.compat_horovod;
  facts.adopted_from = policy.adopted_from;
  facts.elastic = policy.elastic.has_value();
  return facts;
}

// Here alone a job becomes one whose members stay, or one whose members come and go.
std::unique_ptr<Crew> MakeCrew(const ChangingCrew::Parts& parts) {
  const JobPolicy& policy = parts.book->policy;
  if (!policy.elastic.has_value()) {
    return std::make_unique<FixedCrew>(
        FixedCrew::Parts{parts.book, parts.stop, parts.roll, parts.epochs});
  }
  ElasticOptions options = *policy.elastic;
  options.start_timeout_s = policy.start_timeout_s;
  return std::make_unique<ChangingCrew>(parts, options);
}

}  // namespace

JobState::JobState(const Topology& topology, const JobPolicy& policy, double now)
    : book_{policy, now, FactsAtStart(topology, policy), {}},
      stop_(&book_),
      roll_(&book_.facts),
      epochs_(&book_.facts, &book_.outbox),
      stalls_(&book_.facts.topology, policy.stall, &book_.outbox),
      crew_(MakeCrew({&book_, &stop_, &roll_, &epochs_})),
      hosts_({&book_, &stop_, &roll_, crew_.get()}),
      ranks_({&book_, &stop_, &roll_, crew_.get(), &epochs_.members()}) {
  Settle(now);
}

void JobState::Discovered(const std::vector<HostSlots>& hosts, double now) {
  crew_->Listed(hosts, now);
  Settle(now);
}

void JobState::DiscoveryFailed(const std::string& why, double now) {
  stop_.End(Ending::kNoHosts, absl::StrCat("nobody says which hosts there are: ", why), now);
  Settle(now);
}

void JobState::HostGreeted(int host, double now) {
  hosts_.Greeted(host, now);
  Settle(now);
}

void JobState::HostNotStarted(int host, const HostFact& fault, double now) {
  hosts_.NotStarted(host, fault, now);
  Settle(now);
}

void JobState::HostLost(int host, const std::string& cause, double now) {
  hosts_.Lost(host, cause, now);
  Settle(now);
}

void JobState::HostDetail(int host, const LinkEnd& end, double now) {
  hosts_.Detail(host, end);
  Settle(now);
}

void JobState::Heard(int host, const v1::Event& event, double now) {
  TakeHostEvent(host, event, now);
  TakeRankEvent(host, event, now);
  Settle(now);
}

void JobState::TakeHostEvent(int host, const v1::Event& event, double now) {
  switch (event.kind_case()) {
    case v1::Event::kLaunched:
      return hosts_.Launched(host, event.launched());
    case v1::Event::kLaunchFailed:
      return hosts_.LaunchFailed(host, event.launch_failed(), now);
    case v1::Event::kStopped:
      return hosts_.Stopped(host, event.stopped(), now);
    case v1::Event::kLeaseEnded:
      return hosts_.LeaseEnded(host, now);
    case v1::Event::kHostQuiet:
      return crew_->Quiet(host, event.host_quiet(), now);
    case v1::Event::kDrainAsked:
      return crew_->DrainAsked(host, Printable(event.drain_asked().cause()), now);
    case v1::Event::kNotice:
      return book_.outbox.Say(
          absl::StrCat("host ", book_.HostName(host), ": ", Printable(event.notice().text())));
    case v1::Event::kHostAddresses:
      if (!stop_.begun()) crew_->Addresses(host, event.host_addresses());
      return;
    case v1::Event::kHostReady:
      // A job that is being stopped begins no epoch, though the last host may say that it is ready.
      if (!stop_.begun()) crew_->Ready(host, event.host_ready().epoch(), now);
      return;
    case v1::Event::kStallDue:
      if (!stop_.begun()) stalls_.Due(now);
      return;
    case v1::Event::kHostPending: {
      const int place = members().PlaceOf(host);
      const bool known = place >= 0;
      const bool all =
          known && stalls_.Answered(place, event.host_pending(), epochs_.RunningPlaces());
      if (all) TellStall(now);
      return;
    }
    default:  // a rank's
      return;
  }
}

void JobState::TakeRankEvent(int host, const v1::Event& event, double now) {
  switch (event.kind_case()) {
    case v1::Event::kRankStarted:
      return ranks_.Started(event.rank_started());
    case v1::Event::kMemberDied:
      return ranks_.Died(event.member_died(), now);
    case v1::Event::kRankExited:
      return ranks_.Exited(event.rank_exited(), now);
    case v1::Event::kRankBroke:
      return ranks_.Broke(event.rank_broke(), now);
    case v1::Event::kRankInitFailed:
      return ranks_.InitFailed(event.rank_init_failed(), now);
    case v1::Event::kRankJoined:
      return ranks_.Joined(event.rank_joined(), now);
    case v1::Event::kRankLeft:
      return ranks_.Left(host, event.rank_left(), now);
    case v1::Event::kGraceAsked:
      return ranks_.GraceAsked(event.grace_asked());
    case v1::Event::kMemberStands:
      if (!stop_.begun()) crew_->Stands(event.member_stands(), now);
      return;
    case v1::Event::kMemberWithdrew:
      return epochs_.Withdrawn(event.member_withdrew());
    default:  // a host's, or the driver's own
      return;
  }
}

void JobState::StreamMoved(int index, bool end, double now) {
  roll_.StreamMoved(index, end, now);
  if (end) Settle(now);
}

void JobState::OutputPaused(bool paused, double now) {
  roll_.OutputPaused(paused, now);
  Settle(now);
}

void JobState::Signalled(int signal, double now) {
  stop_.Signalled(signal, roll_.running(), now);
  Settle(now);
}

void JobState::ManagerStops(const std::string& words, double now) {
  stop_.ManagerStops(words, now);
  Settle(now);
}

void JobState::ProcessLost(Ending ending, const std::string& text, double now) {
  stop_.ProcessLost(ending, text, now);
  Settle(now);
}

void JobState::Paused(double seconds, double now) {
  stop_.Paused(seconds, roll_.launch_sent(), now);
  Settle(now);
}

void JobState::Tick(double now) {
  const bool stops = stop_.begun();
  stop_.Tick(now);
  if (!stops && !stop_.begun()) TickRunning(now);
  Settle(now);
}

void JobState::TickRunning(double now) {
  if (starting() && now >= hosts_.NextStartDeadline()) hosts_.ReportOverdue(now);
  if (now >= crew_->deadline()) crew_->Tick(now);
  const double timeout_s = book_.policy.start_timeout_s;
  const double waiting = epochs_.waiting_since();
  if (!stop_.begun() && waiting > 0 && now >= waiting + timeout_s) {
    return stop_.End(
        Ending::kNotJoined,
        absl::StrFormat("still without hvd's init after --start-timeout %g s, while the other "
                        "ranks wait: %s%s",
                        timeout_s, epochs_.Missing(), ranks_.InitFailures()),
        now);
  }
  if (stalls_.asking() && now >= stalls_.deadline()) TellStall(now);
}

void JobState::TellStall(double now) {
  if (stop_.begun()) return;
  const std::optional<StallBook::Report> fatal = stalls_.Tell(now, crew_->Awaited(now));
  if (!fatal.has_value() || crew_->ReplaceStalled(*fatal, now)) return;
  stop_.End(Ending::kStalled, fatal->text, now);
}

// Decides whether the job is over, and when to look again.
void JobState::Settle(double now) {
  deadline_ = kForever;
  book_.facts.duration_s = book_.Since(now);
  if (finished_) return;
  deadline_ = stop_.deadline();
  if (stop_.begun()) {
    finished_ = StopDone(now);
    return;
  }
  deadline_ = std::min({deadline_, roll_.DropDrained(&book_.outbox, now), crew_->deadline()});
  if (stalls_.asking()) deadline_ = std::min(deadline_, stalls_.deadline());
  if (!roll_.launched_all()) deadline_ = std::min(deadline_, hosts_.NextStartDeadline());
  const double waiting = epochs_.waiting_since();
  if (waiting > 0) deadline_ = std::min(deadline_, waiting + book_.policy.start_timeout_s);
  if (!ending()) return;
  finished_ = OutputDone(kOutputPatienceS, now);
  if (finished_ && roll_.open_streams() > 0) {
    book_.facts.lost_output.push_back(absl::StrFormat(
        "the end of the ranks' output has not come (%d of their streams)", roll_.open_streams()));
  }
}

bool JobState::StopDone(double now) {
  // Hosts are not waited for any longer. The output that they have sent is the person's, as fast as
  // its reader takes it: the console knows when that one is stuck.
  if (now >= stop_.until()) return OutputDone(kDrainStoppedS, now);
  deadline_ = std::min(deadline_, stop_.until());
  return hosts_.Done(now, &deadline_) && OutputDone(kDrainStoppedS, now);
}

bool JobState::OutputDone(double patience_s, double now) {
  const bool done = roll_.OutputDone(patience_s, now);
  if (!done) deadline_ = std::min(deadline_, roll_.NextLook(patience_s));
  return done;
}

}  // namespace hvd::cli
