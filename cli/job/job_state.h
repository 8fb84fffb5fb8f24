// SPDX-License-Identifier: Apache-2.0
// The job's state table: what the hosts, the person and the clock say goes in, what to do comes
// out. Pure: no sockets, no clock (`now` is seconds of any monotonic clock), one thread.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/job/job_epochs.h"
#include "cli/job/outbox.h"
#include "cli/job/output_drain.h"
#include "cli/job/stall_question.h"
#include "cli/membership/membership.h"
#include "cli/reach/ssh_failure.h"
#include "cli/report/verdict.h"
#include "hvd/v1/link_a.pb.h"
#include "proto/deadlines.h"

namespace hvd {

struct JobPolicy {
  double start_timeout_s = 30;
  double lease_s = kDefaultLeaseS;
  double run_timeout_s = 0;  // 0: none
  double grace_s = kDefaultGraceS;
  bool grace_is_given = false;  // by the person: then it counts whatever the ranks ask for
  bool verbose = false;
  bool report_bindings = false;  // say what of its host each rank has
  StallLimits stall = {};
  bool compat_horovod = false;
  int stdin_rank = -1;  // who gets hvdrun's stdin; -1: none, -2: all
  // The options of a job whose members come and go; its first epoch needs `np` ranks.
  std::optional<ElasticOptions> elastic = {};
  int np = 0;
  std::string manager = {};       // "Slurm job 7", within whose allocation this is; may be empty
  std::string adopted_from = {};  // the launcher that has started the ranks; empty: hvdrun
  int end_notice = 0;  // the signal by which the manager tells that it will kill the job; 0: none
};

class JobState {
 public:
  // In an elastic job `topology` is empty: hosts and ranks come by what is discovered.
  JobState(const Topology& topology, const JobPolicy& policy, double now);

  // Elastic jobs: all hosts that may work for the job from now on, the oldest first. Once at least,
  // also where the list is fixed.
  void Discovered(const std::vector<HostSlots>& hosts, double now);
  // The first list has never come.
  void DiscoveryFailed(const std::string& why, double now);

  // Hosts. Each index is one of the topology's; in an elastic job one of kReach.
  void HostGreeted(int host, double now);  // its link is open
  // It never spoke: cause, remedy and evidence are in `fault`.
  void HostNotStarted(int host, const HostFact& fault, double now);
  void HostLost(int host, const std::string& cause, double now);
  // How the lost host's daemon (or its ssh) ended, learned after the loss.
  void HostDetail(int host, const LinkEnd& end, double now);
  void Heard(int host, const v1::Event& event, double now);

  // Output. A stream ends once; while paused the console is not taking any.
  void StreamMoved(int index, bool end, double now);  // of the facts
  void OutputPaused(bool paused, double now);

  // The person and hvdrun's own processes.
  void Signalled(int signal, double now);
  // A manager ends the job, and this is how it says so.
  void ManagerStops(const std::string& words, double now);
  void ProcessLost(Ending ending, const std::string& text, double now);

  // hvdrun stood still for so long, until now.
  void Paused(double seconds, double now);

  void Tick(double now);
  double deadline() const { return deadline_; }  // when Tick is due
  bool starting() const { return !launched_all_ && !stopping_.begun; }
  bool finished() const { return finished_; }
  // Every rank has ended, or is being stopped.
  bool ending() const { return stopping_.begun || (running_ == 0 && !changes()); }
  // Returns the index of the member's fact; -1: there is none.
  int IndexOf(uint64_t member) const {
    return member >= 1 && member <= facts_.ranks.size() ? static_cast<int>(member) - 1 : -1;
  }

  std::vector<Action> TakeActions() { return outbox_.Take(); }
  const Members& members() const { return epochs_.members(); }
  const JobFacts& facts() const { return facts_; }
  JobFacts* mutable_facts() { return &facts_; }  // for what only the driver knows: the job's name

 private:
  // The job ends: what for, since when, and until when hosts may take to end their ranks.
  struct Stopping {
    bool begun = false;
    bool told = false;  // the person knows
    // Nothing has failed: the ranks' collectives live on, until one of them is gone.
    bool may_agree = false;
    std::string cause;
    double grace_s = 0;
    double since = 0;
    double until = 0;
  };
  // A rank failed because of another, whose own end says more and is waited for.
  struct Victim {
    std::string cause;
    double until = 0;  // 0: there is none
  };
  // hvdrun itself stood still.
  struct Pause {
    double seconds = 0;
    double until = 0;
  };

  // Hosts (job_hosts.cc, with HostGreeted, HostNotStarted, HostLost and HostDetail).
  void Launch();
  void ReportBindings(int host, const v1::Launched& launched);
  void OnReady(int host, uint64_t epoch, double now);
  void OnLaunched(int host, const v1::Launched& launched, double now);
  void OnLaunchFailed(int host, const v1::LaunchFailed& failed, double now);
  void OnStopped(int host, const v1::Stopped& stopped, double now);
  void OnLeaseEnded(int host, double now);
  void ReportOverdue(double now);
  std::vector<int> RunningHosts() const;
  const std::string& HostName(int host) const { return facts_.hosts[host].name; }

  // True for an elastic job while members are replaced (job_elastic.cc). Otherwise the job is as
  // one whose members stay.
  bool changes() const {
    return membership_.has_value() && !membership_->closed() && !stopping_.begun;
  }
  void CarryOut(double now);
  void CarryOut(MembershipAction action, double now);
  void ReachHost(const MembershipAction& action, double now);
  void ForgetReplaced();
  void SpawnMembers(const MembershipAction& action);
  void RetireMember(const MembershipAction& action);
  void StopHost(const MembershipAction& action, double now);
  void ProposeEpoch(const v1::EpochPropose& propose);
  void EndByMembership(const MembershipAction& action, double now);
  void EpochStarted(uint64_t epoch, double now);
  void LoseHost(int host, const std::string& cause, double now);
  void TakeHostOut(int host, const std::string& cause, double now);
  void DropDrained(double now);
  void LoseRanks(int host);
  void TellDeath(int index, const v1::MemberDied& died, double now);
  void ReplaceBroken(int index, const v1::RankBroke& broke, double now);
  bool EndsBySignal(const MemberEnd& end, double now);
  std::vector<AwaitedRank> AwaitedRanks(double now) const;
  bool ReplaceStalled(const StallBook::Report& stall, double now);
  void MembersEvent(int host, const v1::Event& event, double now);

  // Ranks (job_ranks.cc).
  void OnStarted(const v1::RankStarted& started);
  void OnDied(int host, const v1::MemberDied& died, double now);
  void OnExited(const v1::RankExited& exit, double now);
  void FailedExit(int rank, double now);
  void OnBroke(const v1::RankBroke& broke, double now);
  void OnInitFailed(const v1::RankInitFailed& failed, double now);
  void OnJoined(const v1::RankJoined& joined, double now);
  void OnLeft(int host, const v1::RankLeft& left, double now);
  void NoteCause(uint64_t epoch, uint32_t rank);
  std::string NoteUnreached(int host, uint64_t epoch, uint32_t rank, std::string cause);
  bool CauseRuns() const;
  bool OthersNeeded(int rank) const;
  std::string InitFailures() const;
  std::string SayExit(int rank, const v1::RankExited& exit) const;

  // The end (job_end.cc, with Signalled, ManagerStops, Paused, ProcessLost and Tick).
  void Terminate(const std::string& text, double now);
  void Noticed(double now);
  void Stop(const std::string& cause, bool kill, double now);
  void SendStop(const std::string& cause, bool kill);
  void OnGraceAsked(const v1::GraceAsked& asked);
  double GraceS() const;
  void EndAgreement(const std::string& why);
  void StopForVictim(const std::string& cause, double patience_s, double now);
  void EndPaused(double now);
  void End(Ending ending, const std::string& text, double now);
  void TickRunning(double now);
  void TellStall(double now);
  void Settle(double now);
  bool StopDone(double now);
  bool HostsDone(double now);
  bool OutputDone(double patience_s, double now);
  // Until when the host is to have started its ranks.
  double StartDeadline(int host) const {
    return started_ + facts_.hosts[host].reached_s + policy_.start_timeout_s;
  }
  double NextStartDeadline() const;
  bool Starts(int host) const {
    const HostFact::Phase phase = facts_.hosts[host].phase;
    return phase == HostFact::kStarting || phase == HostFact::kGreeted;
  }
  void WakeAt(double when) { deadline_ = std::min(deadline_, when); }
  double Since(double now) const { return now - started_; }

  const JobPolicy policy_;
  JobFacts facts_;
  Outbox outbox_;
  JobEpochs epochs_;
  std::optional<Membership> membership_;  // of an elastic job
  std::vector<HostSlots> discovered_;
  bool carries_out_ = false;  // what the membership wants
  StallQuestion stalls_;
  OutputDrain output_;
  // Elastic: hosts that have stopped, and until when the end of their ranks' output is waited for.
  std::map<int, double> drained_hosts_;
  const double started_;
  int running_ = 0;  // ranks, or members, that have not ended
  bool launch_sent_ = false;
  bool launched_all_ = false;
  bool finished_ = false;
  std::string death_;  // the first that no abort explains, and that the job ends for
  // Whose rank's broken link began the stop; a fault of this host explains it. -1: none.
  int broke_host_ = -1;
  Stopping stopping_;
  Victim victim_;
  Pause pause_;
  int interrupts_ = 0;
  bool noticed_ = false;     // the manager's notice has come
  double faults_until_ = 0;  // other hosts' launch faults are gathered until then
  double last_fault_ = 0;    // when the newest host was lost
  double deadline_ = 0;
};

}  // namespace hvd
