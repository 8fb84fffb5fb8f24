#include "cli/job/job_state.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/clock.h"
#include "base/printable.h"
#include "cli/report/verdict_text.h"
#include "proto/deadlines.h"
#include "proto/exit_code.h"

namespace hvd {
namespace {

constexpr double kFaultSettlingS = SecondsOf(kFaultSettling);
// A rank that leaves by an exception, or cannot go on, still has to unwind, say so and end.
constexpr double kCausePatienceS = 1;
constexpr double kWrapperPatienceS = 0.2;  // for the end of what a dead worker was started by

}  // namespace

JobState::JobState(const Topology& topology, const JobPolicy& policy, double now)
    : policy_(policy), epochs_(&facts_.topology), stalls_(&facts_.topology), started_(now) {
  facts_.topology = topology;
  facts_.compat_horovod = policy.compat_horovod;
  facts_.ranks.resize(topology.size());
  facts_.hosts.resize(topology.hosts().size());
  running_ = topology.size();
  streams_ended_.resize(topology.size());
  gone_.resize(topology.size());
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
  fact.fault_code = kExitLauncher;
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

void JobState::HostDetail(int host, const LinkEnd& end, double now) {
  HostFact& fact = facts_.hosts[host];
  if (detail_known_[host]) return;
  detail_known_[host] = true;
  if (fact.fault == HostFact::kLost) {
    absl::StrAppend(&fact.cause, "; ", end.cause);
    if (fact.remedy.empty()) fact.remedy = end.remedy;
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
      if (event.rank_started().rank() < facts_.ranks.size()) {
        RankFact& fact = facts_.ranks[event.rank_started().rank()];
        if (fact.phase != RankFact::kPlanned) return;
        fact.phase = RankFact::kRunning;
        fact.pid = event.rank_started().pid();
        open_streams_ += 2 - streams_ended_[event.rank_started().rank()];
      }
      return;
    case v1::Event::kMemberDied:
      return OnDied(host, event.member_died());
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
      return Say(absl::StrCat("host ", facts_.topology.hosts()[host].name, ": ",
                              Printable(event.notice().text())));
    case v1::Event::kRankBroke:
      return OnBroke(event.rank_broke(), now);
    case v1::Event::kRankInitFailed:
      return OnInitFailed(event.rank_init_failed(), now);
    case v1::Event::kRankJoined:
      return OnJoined(event.rank_joined(), now);
    case v1::Event::kStallDue:
      return OnStallDue(now);
    case v1::Event::kHostPending:
      return OnPending(host, event.host_pending(), now);
    case v1::Event::kRankLeft:
      return OnLeft(host, event.rank_left());
    case v1::Event::kLeaseEnded:
      return LeaseEnded(host, now);
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
  fact.fault_code = failed.exit_code() != 0 ? failed.exit_code() : kExitLauncher;
  const std::string prefix = absl::StrCat(facts_.topology.hosts()[host].name, ": ");
  fact.cause = Printable(std::string(absl::StripPrefix(failed.message(), prefix)));
  detail_known_[host] = true;
  fact.fault_s = Since(now);
  fact.fault_late = stopping_ && faults_until_ == 0 && host != broke_host_;
  if (faults_until_ == 0) faults_until_ = now + kFaultSettlingS;
  Stop(absl::StrCat("host ", facts_.topology.hosts()[host].name, ": ", fact.cause), false, now);
}

// Whether ranks besides `rank`, which has ended, outlived it and might have waited for it.
bool JobState::OthersNeeded(int rank) const {
  const double ended_s = facts_.ranks[rank].ended_s;
  return std::any_of(facts_.ranks.begin(), facts_.ranks.end(), [ended_s](const RankFact& other) {
    return other.phase == RankFact::kPlanned || other.phase == RankFact::kRunning ||
           (other.phase == RankFact::kExited && other.ended_s > ended_s);
  });
}

void JobState::OnExited(const v1::RankExited& exit, double now) {
  if (exit.rank() >= facts_.ranks.size()) return;
  RankFact& fact = facts_.ranks[exit.rank()];
  if (fact.phase == RankFact::kExited || fact.phase == RankFact::kLost) return;
  if (fact.phase == RankFact::kPlanned) open_streams_ += 2 - streams_ended_[exit.rank()];
  fact.phase = RankFact::kExited;
  fact.exit = exit;
  const std::string& host = facts_.topology.hosts()[facts_.topology.place(exit.rank()).host].name;
  fact.exit.set_exec_error(std::string(absl::StripPrefix(exit.exec_error(), host + ": ")));
  fact.ended_s = std::max(0.0, Since(now) - static_cast<double>(exit.told_after_us()) * 1e-6);
  fact.during_stop = stopping_;
  if (exit.pid() != 0) fact.pid = exit.pid();
  --running_;
  last_output_ = now;
  if (exit.has_abort_rank()) NoteCause(exit.abort_rank());
  if (exit.signal() != 0 || exit.exit_code() != 0) {
    const std::string cause =
        absl::StrCat(NameRank(facts_, exit.rank()), " ", DescribeExit(fact.exit));
    const bool victim = exit.after_abort() && !fact.cause && CauseRuns();
    if (victim) return StopForVictim(cause, kCausePatienceS, now);
    const bool for_death = exit.after_abort() && !fact.cause && !death_.empty();
    return Stop(for_death ? death_ : cause, false, now);
  }
  if (victim_until_ > 0 && !CauseRuns()) return Stop(victim_cause_, false, now);
  if (!exit.left() && !exit.refused() && OthersNeeded(exit.rank())) {
    // Those who failed for it may have been told first.
    fact.early = !stopping_ || started_ + fact.ended_s <= stop_since_;
    // Whoever waits for it gets an error that names it; whoever does not goes on undisturbed.
    if (!stopping_) Abort(SayExit(fact.exit));
  }
  NoteGone(static_cast<int>(exit.rank()), SayExit(fact.exit) + "; it comes to no other hvd_init");
  Settle(now);
}

void JobState::OnBroke(const v1::RankBroke& broke, double now) {
  if (broke.rank() >= facts_.ranks.size() || stopping_) return;
  RankFact& fact = facts_.ranks[broke.rank()];
  fact.broke = broke.message();
  fact.broke_s = Since(now);
  fact.worker = broke.worker();
  broke_host_ = facts_.topology.place(static_cast<int>(broke.rank())).host;
  const std::string cause = Printable(broke.message());
  if (fact.worker.pid() == 0) return Stop(cause, false, now);
  // Its wrapper may be about to end by itself, with a code that says more.
  fact.cause = true;
  Abort(cause);
  StopForVictim(cause, kWrapperPatienceS, now);
}

// It may still say more by how it ends. Ranks of other hosts that wait for it hear of it only here.
void JobState::OnInitFailed(const v1::RankInitFailed& failed, double now) {
  if (failed.rank() >= facts_.ranks.size()) return;
  RankFact& fact = facts_.ranks[failed.rank()];
  fact.init_failure = Printable(failed.message());
  if (!failed.joined()) return;  // others are not there yet, or wait until --start-timeout
  fact.cause = true;
  fact.init_failed_s = Since(now);
  if (stopping_) return;  // for another's, of which this one had not heard
  const std::string cause =
      absl::StrCat("hvd_init of ", NameRank(facts_, failed.rank()), " failed: ", fact.init_failure);
  Abort(cause);
  StopForVictim(cause, kCausePatienceS, now);
}

// "; hvd_init of rank 1 on host0 failed: …" of those that still run.
std::string JobState::InitFailures() const {
  std::string text;
  for (size_t rank = 0; rank < facts_.ranks.size(); ++rank) {
    const RankFact& fact = facts_.ranks[rank];
    if (fact.init_failure.empty() || fact.phase != RankFact::kRunning) continue;
    absl::StrAppend(&text, "; hvd_init of ", NameRank(facts_, static_cast<int>(rank)),
                    " failed: ", fact.init_failure);
  }
  return text;
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
  if (joined.rank() >= facts_.ranks.size()) return;
  RankFact& fact = facts_.ranks[joined.rank()];
  fact.cause = false;
  fact.init_failure.clear();  // another try
  epochs_.Joined(static_cast<int>(joined.rank()), joined.epoch(), now);
  for (int rank = 0; rank < facts_.topology.size(); ++rank) EndUnstartable(rank);
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
  if (paused || output_paused_) last_output_ = now;
  output_paused_ = paused;
  Settle(now);
}

void JobState::Send(int host, v1::Command command) {
  actions_.push_back({Action::kSend, host, std::move(command), ""});
}

void JobState::Say(std::string text) {
  actions_.push_back({Action::kSay, kAllHosts, {}, std::move(text)});
}

void JobState::Abort(const std::string& cause, uint64_t epoch) {
  v1::Command command;
  command.mutable_epoch_abort()->set_epoch(epoch);
  command.mutable_epoch_abort()->set_cause(cause);
  Send(kAllHosts, std::move(command));
}

std::vector<Action> JobState::TakeActions() { return std::exchange(actions_, {}); }

}  // namespace hvd
