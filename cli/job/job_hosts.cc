// SPDX-License-Identifier: Apache-2.0
// JobState's part for hosts: from the first word to the last, and what is wrong with one.
#include <limits>
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
  if (membership_) {
    if (!changes()) return Settle(now);
    launch_sent_ = true;
    outbox_.Prepare(host);
    membership_->HostReady(host, now);
    return CarryOut(now);
  }
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
  fact.fault_code = fault.fault_code;
  fact.cause = fault.cause;
  fact.remedy = fault.remedy;
  fact.evidence = fault.evidence;
  fact.phase = HostFact::kGone;
  fact.fault = HostFact::kNotStarted;
  fact.fault_s = Since(now);
  fact.fault_late = stopping_.begun && faults_until_ == 0;
  fact.end_known = true;
  if (membership_ && (changes() || fact.past)) {
    if (!fact.evidence.empty()) outbox_.Say(absl::StrCat("host ", fact.name, ":\n", fact.evidence));
    const std::string& next = fact.remedy;
    return LoseHost(host, next.empty() ? fact.cause : absl::StrCat(fact.cause, "; ", next), now);
  }
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
  if (membership_ && (changes() || fact.past)) return LoseHost(host, cause, now);
  EndAgreement(absl::StrCat("lost host ", HostName(host), ": ", cause));
  LoseRanks(host);
  Stop(absl::StrCat("lost host ", HostName(host), ": ", cause), false, now);
}

void JobState::LoseRanks(int host) {
  for (size_t index = 0; index < facts_.ranks.size(); ++index) {
    RankFact& lost = facts_.ranks[index];
    if (lost.host != host || lost.phase == RankFact::kExited || lost.phase == RankFact::kLost) {
      continue;
    }
    output_.Lost(static_cast<int>(index));
    lost.phase = RankFact::kLost;
    --running_;
  }
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
    // Ranks of an elastic job belong to its epochs.
    const std::string rank =
        membership_ ? "" : absl::StrCat("rank ", facts_.topology.rank_at(host, slot), ": ");
    if (!policy_.adopted_from.empty()) {
      outbox_.Say(absl::StrCat(rank, "host ", HostName(host), ", adopted from ",
                               policy_.adopted_from, ", which has placed it"));
      continue;
    }
    outbox_.Say(absl::StrCat(rank, "host ", HostName(host), ", slot ", slot, ", cores ",
                             FormatCores(share.cores), ", GPU ", FormatGpus(slot, share)));
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
  launched_all_ = std::all_of(facts_.hosts.begin(), facts_.hosts.end(), [this](const auto& fact) {
    return fact.phase == HostFact::kLaunched || (membership_ && fact.phase == HostFact::kGone);
  });
  Settle(now);
}

void JobState::OnLaunchFailed(int host, const v1::LaunchFailed& failed, double now) {
  HostFact& fact = facts_.hosts[host];
  if (fact.fault != HostFact::kNone) return;
  // Once its ranks run, what failed is the host, not the launch.
  const bool running =
      std::any_of(facts_.ranks.begin(), facts_.ranks.end(), [host](const RankFact& rank) {
        return rank.host == host && rank.phase == RankFact::kRunning;
      });
  fact.fault = running ? HostFact::kLost : HostFact::kLaunchFailed;
  fact.fault_code = failed.exit_code() != 0 ? failed.exit_code() : kExitLauncher;
  const std::string prefix = absl::StrCat(HostName(host), ": ");
  fact.cause = Printable(std::string(absl::StripPrefix(failed.message(), prefix)));
  fact.end_known = true;
  fact.fault_s = Since(now);
  fact.fault_late = stopping_.begun && faults_until_ == 0 && host != broke_host_;
  // A program that a host cannot start is no fault of the host's while nothing has run anywhere.
  const bool no_program = failed.exit_code() != 0 && failed.exit_code() != kExitLauncher;
  if ((changes() && !(no_program && facts_.epochs.empty())) || fact.past) {
    fact.phase = HostFact::kGone;
    return LoseHost(host, fact.cause, now);
  }
  if (faults_until_ == 0) faults_until_ = now + kFaultSettlingS;
  EndAgreement(absl::StrCat("host ", HostName(host), ": ", fact.cause));
  Stop(absl::StrCat("host ", HostName(host), ": ", fact.cause), false, now);
}

double JobState::NextStartDeadline() const {
  double next = std::numeric_limits<double>::infinity();
  for (int host = 0; host < static_cast<int>(facts_.hosts.size()); ++host) {
    if (Starts(host)) next = std::min(next, StartDeadline(host));
  }
  return next;
}

// Reports the hosts that are to be waited for and have not done what the start asks of them.
void JobState::ReportOverdue(double now) {
  for (int host = 0; host < static_cast<int>(facts_.hosts.size()); ++host) {
    const HostFact::Phase phase = facts_.hosts[host].phase;
    if (now < StartDeadline(host)) continue;
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
    const int place = members().PlaceOf(host);
    if (facts_.hosts[host].phase == HostFact::kLaunched && place >= 0) running.push_back(place);
  }
  return running;
}

void JobState::OnStopped(int host, const v1::Stopped& stopped, double now) {
  HostFact& fact = facts_.hosts[host];
  output_.MayFollow(now);
  fact.phase = HostFact::kGone;
  fact.survivors = stopped.survivors();
  fact.end_known = true;
  if (changes() || fact.past) {
    drained_hosts_[host] = now + kOutputPatienceS;
    return TakeHostOut(host, "it was stopped", now);
  }
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
