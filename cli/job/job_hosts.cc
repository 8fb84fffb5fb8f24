// JobState's part for hosts: from the first word to the last, and what is wrong with one.
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/clock.h"
#include "base/printable.h"
#include "cli/job/job_state.h"
#include "placement/core_plan.h"
#include "placement/host_plan.h"
#include "proto/deadlines.h"
#include "proto/exit_code.h"

namespace hvd {
namespace {

constexpr double kFaultSettlingS = SecondsOf(kFaultSettling);

}  // namespace

void JobState::HostGreeted(int host, double now) {
  if (facts_.hosts[host].phase != HostFact::kStarting) return;
  facts_.hosts[host].phase = HostFact::kGreeted;
  const bool all = std::all_of(facts_.hosts.begin(), facts_.hosts.end(), [](const HostFact& fact) {
    return fact.phase == HostFact::kGreeted;
  });
  if (all && !stopping_.begun) Launch();
  Settle(now);
}

// One after the other without an answer in between: a daemon takes them in this order.
void JobState::Launch() {
  launch_sent_ = true;
  outbox_.Prepare();
  epochs_.Propose();
  const auto takes_stdin = [this](int rank) {
    return policy_.stdin_rank == -2 || policy_.stdin_rank == rank;
  };
  for (int host = 0; host < static_cast<int>(facts_.hosts.size()); ++host) {
    v1::Command command;
    *command.mutable_spawn_slots() = members().Seats(host, takes_stdin);
    outbox_.Send(host, std::move(command));
  }
}

void JobState::HostNotStarted(int host, const HostFact& fault, double now) {
  HostFact& fact = facts_.hosts[host];
  if (fact.phase == HostFact::kGone) return;
  fact = fault;
  fact.phase = HostFact::kGone;
  fact.fault = HostFact::kNotStarted;
  fact.fault_s = Since(now);
  fact.fault_late = stopping_.begun && faults_until_ == 0;
  fact.end_known = true;
  if (faults_until_ == 0) faults_until_ = now + kFaultSettlingS;
  Stop(absl::StrCat("host ", HostName(host), ": ", fact.cause), false, now);
}

void JobState::HostLost(int host, const std::string& cause, double now) {
  HostFact& fact = facts_.hosts[host];
  if (fact.phase == HostFact::kGone) return;
  fact.phase = HostFact::kGone;
  fact.fault = HostFact::kLost;
  fact.fault_code = kExitLauncher;
  fact.cause = cause;
  fact.fault_s = Since(now);
  fact.fault_late = stopping_.begun && host != broke_host_;
  last_fault_ = now;
  const int first = facts_.topology.first_rank(host);
  for (int rank = first; rank < first + facts_.topology.hosts()[host].ranks; ++rank) {
    RankFact& lost = facts_.ranks[rank];
    if (lost.phase == RankFact::kExited) continue;
    output_.Lost(rank);
    lost.phase = RankFact::kLost;
    --running_;
  }
  Stop(absl::StrCat("lost host ", HostName(host), ": ", cause), false, now);
}

void JobState::HostDetail(int host, const LinkEnd& end, double now) {
  HostFact& fact = facts_.hosts[host];
  if (fact.end_known) return;
  fact.end_known = true;
  if (fact.fault == HostFact::kLost) {
    absl::StrAppend(&fact.cause, "; ", end.cause);
    if (fact.remedy.empty()) fact.remedy = end.remedy;
  }
  Settle(now);
}

void JobState::ReportBindings(int host, const v1::Launched& launched) {
  for (const v1::SlotShare& told : launched.shares()) {
    SlotShare share;
    share.cores.assign(told.cores().begin(), told.cores().end());
    for (const v1::GpuName& gpu : told.gpus()) share.gpus.push_back({gpu.uuid(), gpu.name()});
    share.shared = told.shared();
    share.visible.resize(told.visible());
    const int slot = static_cast<int>(told.slot());
    outbox_.Say(absl::StrCat("rank ", facts_.topology.first_rank(host) + slot, ": host ",
                             HostName(host), ", slot ", slot, ", cores ", FormatCores(share.cores),
                             ", GPU ", FormatGpus(slot, share)));
  }
}

void JobState::OnLaunched(int host, const v1::Launched& launched, double now) {
  static constexpr const char* kLevels[] = {"?", "PID namespace", "cgroup", "subreaper"};
  HostFact& fact = facts_.hosts[host];
  if (fact.phase != HostFact::kGreeted) return;
  fact.phase = HostFact::kLaunched;
  fact.containment = launched.containment();
  if (policy_.verbose) {
    outbox_.Say(absl::StrCat("host ", HostName(host), ": hvdd pid ", launched.pid(), ", ",
                             launched.gpu_uuids_size(), " GPUs, containment by ",
                             kLevels[launched.containment() & 3]));
  }
  if (policy_.report_bindings) ReportBindings(host, launched);
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
  const std::string prefix = absl::StrCat(HostName(host), ": ");
  fact.cause = Printable(std::string(absl::StripPrefix(failed.message(), prefix)));
  fact.end_known = true;
  fact.fault_s = Since(now);
  fact.fault_late = stopping_.begun && faults_until_ == 0 && host != broke_host_;
  if (faults_until_ == 0) faults_until_ = now + kFaultSettlingS;
  Stop(absl::StrCat("host ", HostName(host), ": ", fact.cause), false, now);
}

// Of the hosts that are to be waited for, those that have not done what the start asks of them.
void JobState::ReportOverdue(double now) {
  for (int host = 0; host < static_cast<int>(facts_.hosts.size()); ++host) {
    const HostFact::Phase phase = facts_.hosts[host].phase;
    if (phase == HostFact::kStarting) outbox_.ReportOverdue(host);
    if (phase != HostFact::kGreeted || !launch_sent_) continue;
    HostFact fault;
    fault.fault_code = kExitLauncher;
    fault.cause = absl::StrFormat("hvdd did not start the ranks within --start-timeout %g s",
                                  policy_.start_timeout_s);
    fault.remedy = "is a file system or the machine stuck there?";
    HostNotStarted(host, fault, now);
  }
}

std::vector<int> JobState::RunningHosts() const {
  std::vector<int> running;
  for (int host = 0; host < static_cast<int>(facts_.hosts.size()); ++host) {
    if (facts_.hosts[host].phase == HostFact::kLaunched) running.push_back(host);
  }
  return running;
}

void JobState::OnStopped(int host, const v1::Stopped& stopped, double now) {
  HostFact& fact = facts_.hosts[host];
  output_.MayFollow(now);
  fact.phase = HostFact::kGone;
  fact.survivors = stopped.survivors();
  fact.end_known = true;
  Settle(now);
}

void JobState::OnLeaseEnded(int host, double now) {
  if (pause_.seconds > policy_.lease_s / 2 && now < pause_.until + policy_.lease_s) {
    return EndPaused(now);
  }
  HostLost(host,
           absl::StrFormat("its hvdd did not hear hvdrun for %g s (--lease): the network or the "
                           "remote shell was stuck; it ended its ranks",
                           policy_.lease_s),
           now);
}

}  // namespace hvd
