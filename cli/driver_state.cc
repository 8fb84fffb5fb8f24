#include "cli/driver_state.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "cli/verdict_text.h"

namespace hvd {
namespace {

constexpr double kFaultSettlingS = 0.2;  // for the same fault on other hosts

}  // namespace

JobState::JobState(const Topology& topology, const JobPolicy& policy, double now)
    : policy_(policy), epochs_(&facts_.topology), stalls_(&facts_.topology), started_(now) {
  facts_.topology = topology;
  facts_.ranks.resize(topology.size());
  facts_.hosts.resize(topology.hosts().size());
  running_ = topology.size();
  streams_ended_.resize(topology.size());
  detail_known_.resize(topology.hosts().size());
  Settle(now);
}

void JobState::HostGreeted(int host, double now) {
  if (facts_.hosts[host].phase != HostFact::kStarting) return;
  facts_.hosts[host].phase = HostFact::kGreeted;
  const bool all = std::all_of(facts_.hosts.begin(), facts_.hosts.end(), [](const HostFact& fact) {
    return fact.phase == HostFact::kGreeted;
  });
  if (all && !stopping_) {
    launch_sent_ = true;
    actions_.push_back({Action::kLaunch});
  }
  Settle(now);
}

void JobState::HostNotStarted(int host, const HostFact& fault, double now) {
  HostFact& fact = facts_.hosts[host];
  if (fact.phase == HostFact::kGone) return;
  fact = fault;
  fact.phase = HostFact::kGone;
  fact.fault = HostFact::kNotStarted;
  fact.fault_s = Since(now);
  fact.fault_late = stopping_ && faults_until_ == 0;
  detail_known_[host] = true;
  if (faults_until_ == 0) faults_until_ = now + kFaultSettlingS;
  Stop(absl::StrCat("host ", facts_.topology.hosts()[host].name, ": ", fact.cause), false, now);
}

void JobState::HostLost(int host, const std::string& cause, double now) {
  HostFact& fact = facts_.hosts[host];
  if (fact.phase == HostFact::kGone) return;
  fact.phase = HostFact::kGone;
  fact.fault = HostFact::kLost;
  fact.fault_code = 125;
  fact.cause = cause;
  fact.fault_s = Since(now);
  fact.fault_late = stopping_ && host != broke_host_;
  last_fault_ = now;
  const int first = facts_.topology.first_rank(host);
  for (int rank = first; rank < first + facts_.topology.hosts()[host].ranks; ++rank) {
    RankFact& lost = facts_.ranks[rank];
    if (lost.phase == RankFact::kRunning && streams_ended_[rank] < 2) {
      open_streams_ -= 2 - streams_ended_[rank];
      streams_ended_[rank] = 2;
    }
    if (lost.phase == RankFact::kExited) continue;
    lost.phase = RankFact::kLost;
    --running_;
  }
  Stop(absl::StrCat("lost host ", facts_.topology.hosts()[host].name, ": ", cause), false, now);
}

void JobState::HostDetail(int host, const std::string& detail, double now) {
  HostFact& fact = facts_.hosts[host];
  if (detail_known_[host]) return;
  detail_known_[host] = true;
  if (fact.fault == HostFact::kLost) absl::StrAppend(&fact.cause, "; ", detail);
  Settle(now);
}

void JobState::Heard(int host, const v1::Event& event, double now) {
  switch (event.kind_case()) {
    case v1::Event::kLaunched:
      return OnLaunched(host, event.launched(), now);
    case v1::Event::kLaunchFailed:
      return OnLaunchFailed(host, event.launch_failed(), now);
    case v1::Event::kRankStarted:
      if (event.rank_started().rank() < facts_.ranks.size()) {
        RankFact& fact = facts_.ranks[event.rank_started().rank()];
        if (fact.phase != RankFact::kPlanned) return;
        fact.phase = RankFact::kRunning;
        fact.pid = event.rank_started().pid();
        open_streams_ += 2 - streams_ended_[event.rank_started().rank()];
      }
      return;
    case v1::Event::kRankExited:
      return OnExited(event.rank_exited(), now);
    case v1::Event::kHostAddresses:
      return OnAddresses(host, event.host_addresses(), now);
    case v1::Event::kHostReady:
      if (epochs_.Ready(host, event.host_ready().epoch())) {
        v1::Command go;
        go.mutable_epoch_go()->set_epoch(event.host_ready().epoch());
        Send(kAllHosts, std::move(go));
      }
      return;
    case v1::Event::kStopped:
      last_output_ = now;
      facts_.hosts[host].phase = HostFact::kGone;
      facts_.hosts[host].survivors = event.stopped().survivors();
      detail_known_[host] = true;
      return Settle(now);
    case v1::Event::kNotice:
      return Say(
          absl::StrCat("host ", facts_.topology.hosts()[host].name, ": ", event.notice().text()));
    case v1::Event::kRankBroke:
      return OnBroke(event.rank_broke(), now);
    case v1::Event::kRankJoined:
      return OnJoined(event.rank_joined(), now);
    case v1::Event::kStallDue:
      return OnStallDue(now);
    case v1::Event::kHostPending:
      return OnPending(host, event.host_pending(), now);
    case v1::Event::kRankLeft:
      return OnLeft(host, event.rank_left());
    case v1::Event::kStdinCredit:  // the driver's own, and so is the next
    case v1::Event::kTimelineAsked:
    case v1::Event::KIND_NOT_SET:
      return;
  }
}

void JobState::OnLaunched(int host, const v1::Launched& launched, double now) {
  static constexpr const char* kLevels[] = {"?", "PID namespace", "cgroup", "subreaper"};
  HostFact& fact = facts_.hosts[host];
  if (fact.phase != HostFact::kGreeted) return;
  fact.phase = HostFact::kLaunched;
  fact.containment = launched.containment();
  if (policy_.verbose) {
    Say(absl::StrCat("host ", facts_.topology.hosts()[host].name, ": hvdd pid ", launched.pid(),
                     ", ", launched.gpu_uuids_size(), " GPUs, containment by ",
                     kLevels[launched.containment() & 3]));
  }
  launched_all_ = std::all_of(facts_.hosts.begin(), facts_.hosts.end(), [](const HostFact& fact) {
    return fact.phase == HostFact::kLaunched;
  });
  Settle(now);
}

void JobState::OnLaunchFailed(int host, const v1::LaunchFailed& failed, double now) {
  HostFact& fact = facts_.hosts[host];
  if (fact.fault != HostFact::kNone) return;
  // Once its ranks run, what failed is the host, not the launch.
  const int first = facts_.topology.first_rank(host);
  const int end = first + facts_.topology.hosts()[host].ranks;
  const bool running =
      std::any_of(facts_.ranks.begin() + first, facts_.ranks.begin() + end,
                  [](const RankFact& rank) { return rank.phase == RankFact::kRunning; });
  fact.fault = running ? HostFact::kLost : HostFact::kLaunchFailed;
  fact.fault_code = failed.exit_code() != 0 ? failed.exit_code() : 125;
  const std::string prefix = absl::StrCat(facts_.topology.hosts()[host].name, ": ");
  fact.cause = std::string(absl::StripPrefix(failed.message(), prefix));
  detail_known_[host] = true;
  fact.fault_s = Since(now);
  fact.fault_late = stopping_ && faults_until_ == 0 && host != broke_host_;
  if (faults_until_ == 0) faults_until_ = now + kFaultSettlingS;
  Stop(absl::StrCat("host ", facts_.topology.hosts()[host].name, ": ", fact.cause), false, now);
}

// Whether ranks besides `rank` are still there and might wait for it.
bool JobState::OthersNeeded(int rank) const {
  const bool itself_counts = facts_.ranks[rank].phase == RankFact::kRunning ||
                             facts_.ranks[rank].phase == RankFact::kPlanned;
  return running_ > (itself_counts ? 1 : 0);
}

void JobState::OnExited(const v1::RankExited& exit, double now) {
  if (exit.rank() >= facts_.ranks.size()) return;
  RankFact& fact = facts_.ranks[exit.rank()];
  if (fact.phase == RankFact::kExited || fact.phase == RankFact::kLost) return;
  if (fact.phase == RankFact::kPlanned) open_streams_ += 2 - streams_ended_[exit.rank()];
  fact.phase = RankFact::kExited;
  fact.exit = exit;
  fact.ended_s = std::max(0.0, Since(now) - static_cast<double>(exit.told_after_us()) * 1e-6);
  fact.during_stop = stopping_;
  if (exit.pid() != 0) fact.pid = exit.pid();
  --running_;
  last_output_ = now;
  if (exit.has_abort_rank()) NoteCause(exit.abort_rank());
  if (exit.signal() != 0 || exit.exit_code() != 0) {
    const std::string cause = absl::StrCat(NameRank(facts_, exit.rank()), " ", DescribeExit(exit));
    const bool victim = exit.after_abort() && !fact.cause && CauseRuns();
    return victim ? StopForVictim(cause, now) : Stop(cause, false, now);
  }
  if (victim_until_ > 0 && !CauseRuns()) return Stop(victim_cause_, false, now);
  if (!stopping_ && !exit.left() && OthersNeeded(exit.rank())) {
    fact.early = exit.joined() || epochs_.newest() != 0;
    OnEarlyExit(fact);
  }
  Settle(now);
}

// Whoever waits for the rank gets an error that names it; whoever does not goes on undisturbed.
void JobState::OnEarlyExit(const RankFact& fact) {
  Abort(absl::StrCat(NameRank(facts_, fact.exit.rank()), " exited (code 0) without ",
                     fact.exit.joined() ? "hvd's shutdown" : "hvd's init"));
}

void JobState::OnBroke(const v1::RankBroke& broke, double now) {
  if (broke.rank() >= facts_.ranks.size() || stopping_) return;
  RankFact& fact = facts_.ranks[broke.rank()];
  fact.broke = broke.message();
  fact.broke_s = Since(now);
  broke_host_ = facts_.topology.place(static_cast<int>(broke.rank())).host;
  Stop(absl::StrCat(NameRank(facts_, broke.rank()), ": ", broke.message()), false, now);
}

// Ranks abort an epoch themselves when one leaves while others wait for it, or cannot go on. Those
// that are inside a collective on other hosts hear of it only here.
void JobState::OnLeft(int host, const v1::RankLeft& left) {
  if (left.has_abort_rank()) NoteCause(left.abort_rank());
  if (stopping_ || left.aborted().empty() || left.epoch() <= told_aborted_) return;
  told_aborted_ = left.epoch();
  for (size_t other = 0; other < facts_.hosts.size(); ++other) {
    if (static_cast<int>(other) == host || facts_.hosts[other].phase == HostFact::kGone) continue;
    v1::Command command;
    command.mutable_epoch_abort()->set_epoch(left.epoch());
    command.mutable_epoch_abort()->set_cause(left.aborted());
    Send(static_cast<int>(other), std::move(command));
  }
}

// By a worker's word.
void JobState::NoteCause(uint32_t rank) {
  if (rank < facts_.ranks.size()) facts_.ranks[rank].cause = true;
}

bool JobState::CauseRuns() const {
  return std::any_of(facts_.ranks.begin(), facts_.ranks.end(), [](const RankFact& fact) {
    return fact.cause && fact.phase == RankFact::kRunning;
  });
}

void JobState::OnJoined(const v1::RankJoined& joined, double now) {
  if (joined.rank() < facts_.ranks.size()) facts_.ranks[joined.rank()].cause = false;
  epochs_.Joined(static_cast<int>(joined.rank()), joined.epoch(), now);
  Settle(now);
}

void JobState::OnAddresses(int host, const v1::HostAddresses& addresses, double now) {
  if (stopping_) return;
  if (auto table = epochs_.Collect(host, addresses)) {
    v1::Command command;
    *command.mutable_epoch_table() = *std::move(table);
    Send(kAllHosts, std::move(command));
  }
  Settle(now);
}

void JobState::StreamMoved(int rank, bool end, double now) {
  last_output_ = now;
  if (end && rank >= 0 && rank < static_cast<int>(streams_ended_.size()) &&
      streams_ended_[rank] < 2) {
    ++streams_ended_[rank];
    if (facts_.ranks[rank].phase != RankFact::kPlanned) --open_streams_;
  }
  if (end) Settle(now);
}

void JobState::OutputPaused(bool paused, double now) {
  output_paused_ = paused;
  last_output_ = now;
  Settle(now);
}

void JobState::Send(int host, v1::Command command) {
  actions_.push_back({Action::kSend, host, std::move(command), ""});
}

void JobState::Say(std::string text) {
  actions_.push_back({Action::kSay, kAllHosts, {}, std::move(text)});
}

void JobState::Abort(const std::string& cause) {
  v1::Command command;
  command.mutable_epoch_abort()->set_cause(cause);
  Send(kAllHosts, std::move(command));
}

std::vector<Action> JobState::TakeActions() { return std::exchange(actions_, {}); }

}  // namespace hvd
