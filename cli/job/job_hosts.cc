// SPDX-License-Identifier: Apache-2.0
#include "cli/job/job_hosts.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/clock.h"
#include "base/printable.h"
#include "placement/core_plan.h"
#include "placement/host_plan.h"
#include "proto/deadlines.h"
#include "proto/exit_code.h"

namespace hvd::cli {
namespace {

constexpr double kFaultSettlingS = SecondsOf(kFaultSettling);
constexpr double kDetailPatienceS = 0.04;  // for the exit status of a lost host's ssh

}  // namespace

void JobHosts::Greeted(int host, double now) {
  if (Of(host).phase != HostFact::kStarting) return;
  Of(host).phase = HostFact::kGreeted;
  parts_.crew->HostGreeted(host, now);
}

void JobHosts::NotStarted(int host, const HostFact& fault, double now) {
  HostFact& fact = Of(host);
  if (fact.phase == HostFact::kGone) return;
  fact.fault_code = fault.fault_code;
  fact.cause = fault.cause;
  fact.remedy = fault.remedy;
  fact.evidence = fault.evidence;
  fact.phase = HostFact::kGone;
  fact.fault = HostFact::kNotStarted;
  fact.fault_s = parts_.book->Since(now);
  fact.fault_late = parts_.stop->begun() && faults_until_ == 0;
  fact.end_known = true;
  if (!GoesOnWithout(fact)) return EndForLaunch(host, now);
  const std::string evidence = absl::StrCat("host ", fact.name, ":\n", fact.evidence);
  if (!fact.evidence.empty()) parts_.book->outbox.Say(evidence);
  const std::string& next = fact.remedy;
  parts_.crew->LoseHost(host, next.empty() ? fact.cause : absl::StrCat(fact.cause, "; ", next),
                        now);
}

// The same may be wrong with others, which is known a moment later.
void JobHosts::EndForLaunch(int host, double now) {
  if (faults_until_ == 0) faults_until_ = now + kFaultSettlingS;
  parts_.stop->Stop(absl::StrCat("host ", Of(host).name, ": ", Of(host).cause), now);
}

void JobHosts::Lost(int host, const std::string& cause, double now) {
  HostFact& fact = Of(host);
  if (fact.phase == HostFact::kGone) return;
  fact.phase = HostFact::kGone;
  fact.fault = HostFact::kLost;
  fact.fault_code = kExitLauncher;
  fact.cause = cause;
  fact.fault_s = parts_.book->Since(now);
  fact.fault_late = parts_.stop->Explains(host);
  last_fault_ = now;
  if (GoesOnWithout(fact)) return parts_.crew->LoseHost(host, cause, now);
  const std::string why = absl::StrCat("lost host ", fact.name, ": ", cause);
  parts_.stop->EndAgreement(why);
  parts_.roll->LoseRanks(host);
  parts_.stop->Stop(why, now);
}

void JobHosts::Detail(int host, const LinkEnd& end) {
  HostFact& fact = Of(host);
  if (fact.end_known) return;
  fact.end_known = true;
  if (fact.fault != HostFact::kLost) return;
  absl::StrAppend(&fact.cause, "; ", end.cause);
  if (fact.remedy.empty()) fact.remedy = end.remedy;
}

void JobHosts::ReportBindings(int host, const v1::Launched& launched) {
  for (const v1::SlotShare& told : launched.shares()) {
    SlotShare share;
    share.cores.assign(told.cores().begin(), told.cores().end());
    for (const v1::GpuName& gpu : told.gpus()) share.gpus.push_back({gpu.uuid(), gpu.name()});
    share.shared = told.shared();
    share.visible.resize(told.visible());
    const int slot = static_cast<int>(told.slot());
    const std::string rank = RankIn(host, slot);
    if (!parts_.book->policy.adopted_from.empty()) {
      parts_.book->outbox.Say(absl::StrCat(rank, "host ", Of(host).name, ", adopted from ",
                                           parts_.book->policy.adopted_from,
                                           ", which has placed it"));
      continue;
    }
    parts_.book->outbox.Say(absl::StrCat(rank, "host ", Of(host).name, ", slot ", slot, ", cores ",
                                         FormatCores(share.cores), ", GPU ",
                                         FormatGpus(slot, share)));
  }
}

// "rank 3: ", where a rank has been given this slot already.
std::string JobHosts::RankIn(int host, int slot) const {
  for (const RankFact& fact : parts_.book->facts.ranks) {
    const bool there = fact.host == host && fact.slot == slot && fact.rank >= 0;
    if (there) return absl::StrCat("rank ", fact.rank, ": ");
  }
  return "";
}

void JobHosts::Launched(int host, const v1::Launched& launched) {
  static constexpr const char* kLevels[] = {"?", "PID namespace", "cgroup", "subreaper"};
  if (Of(host).phase != HostFact::kGreeted) return;
  parts_.roll->Launched(host, launched.containment());
  if (parts_.book->policy.verbose) {
    parts_.book->outbox.Say(absl::StrCat("host ", Of(host).name, ": hvdd pid ", launched.pid(),
                                         ", ", launched.gpu_uuids_size(), " GPUs, containment by ",
                                         kLevels[launched.containment() & 3]));
  }
  if (parts_.book->policy.report_bindings) ReportBindings(host, launched);
}

void JobHosts::LaunchFailed(int host, const v1::LaunchFailed& failed, double now) {
  HostFact& fact = Of(host);
  if (fact.fault != HostFact::kNone) return;
  const auto& ranks = parts_.book->facts.ranks;
  // Once its ranks run, what failed is the host, not the launch.
  const bool running = std::any_of(ranks.begin(), ranks.end(), [host](const RankFact& rank) {
    return rank.host == host && rank.phase == RankFact::kRunning;
  });
  fact.fault = running ? HostFact::kLost : HostFact::kLaunchFailed;
  fact.fault_code = failed.exit_code() != 0 ? failed.exit_code() : kExitLauncher;
  const std::string prefix = absl::StrCat(fact.name, ": ");
  fact.cause = Printable(std::string(absl::StripPrefix(failed.message(), prefix)));
  fact.end_known = true;
  fact.fault_s = parts_.book->Since(now);
  fact.fault_late = faults_until_ == 0 && parts_.stop->Explains(host);
  // A program that a host cannot start is no fault of the host's while nothing has run anywhere.
  const bool no_program = failed.exit_code() != 0 && failed.exit_code() != kExitLauncher;
  const bool ends = no_program && parts_.book->facts.epochs.empty();
  if ((parts_.crew->changes() && !ends) || fact.past) {
    fact.phase = HostFact::kGone;
    return parts_.crew->LoseHost(host, fact.cause, now);
  }
  parts_.stop->EndAgreement(absl::StrCat("host ", fact.name, ": ", fact.cause));
  EndForLaunch(host, now);
}

void JobHosts::Stopped(int host, const v1::Stopped& stopped, double now) {
  HostFact& fact = Of(host);
  parts_.roll->MayFollow(now);
  fact.phase = HostFact::kGone;
  fact.survivors = stopped.survivors();
  fact.end_known = true;
  if (GoesOnWithout(fact)) parts_.crew->HostStopped(host, now);
}

void JobHosts::LeaseEnded(int host, double now) {
  if (parts_.stop->ExplainsSilence(now)) return;
  Lost(host,
       absl::StrFormat("its hvdd did not hear hvdrun for %g s (--lease): the network or the "
                       "remote shell was stuck; it ended its ranks",
                       parts_.book->policy.lease_s),
       now);
}

// Until then the host is to have started its ranks.
double JobHosts::StartDeadline(int host) const {
  return parts_.book->started + Of(host).reached_s + parts_.book->policy.start_timeout_s;
}

double JobHosts::NextStartDeadline() const {
  double next = std::numeric_limits<double>::infinity();
  for (int host = 0; host < count(); ++host) {
    const HostFact::Phase phase = Of(host).phase;
    const bool starts = phase == HostFact::kStarting || phase == HostFact::kGreeted;
    if (starts) next = std::min(next, StartDeadline(host));
  }
  return next;
}

void JobHosts::ReportOverdue(double now) {
  for (int host = 0; host < count(); ++host) {
    const HostFact::Phase phase = Of(host).phase;
    if (now < StartDeadline(host)) continue;
    if (phase == HostFact::kStarting) parts_.book->outbox.ReportOverdue(host);
    if (phase != HostFact::kGreeted || !parts_.roll->launch_sent()) continue;
    HostFact fault;
    fault.fault_code = kExitLauncher;
    fault.cause = absl::StrFormat("hvdd did not start the ranks within --start-timeout %g s",
                                  parts_.book->policy.start_timeout_s);
    fault.remedy = "is a file system or the machine stuck there?";
    NotStarted(host, fault, now);
  }
}

// Nothing runs yet: what we wait for is the same fault on other hosts.
bool JobHosts::StopsAlike(double now) const {
  const auto& hosts = parts_.book->facts.hosts;
  return now < faults_until_ && std::any_of(hosts.begin(), hosts.end(), [](const HostFact& fact) {
           return fact.fault == HostFact::kNone && fact.phase != HostFact::kGone;
         });
}

bool JobHosts::Done(double now, double* wake) const {
  if (StopsAlike(now)) {
    *wake = std::min(*wake, faults_until_);
    return false;
  }
  for (const HostFact& fact : parts_.book->facts.hosts) {
    // One that has not spoken does not hear us.
    const bool hears = fact.phase != HostFact::kGone && fact.phase != HostFact::kStarting;
    if (hears && parts_.roll->launch_sent()) return false;
    const double detail = last_fault_ + kDetailPatienceS;
    if (fact.fault == HostFact::kLost && !fact.end_known && now < detail) {
      *wake = std::min(*wake, detail);
      return false;
    }
  }
  return true;
}

}  // namespace hvd::cli
