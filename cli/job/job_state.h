// The job's state table: what the hosts, the person and the clock say goes in, what to do comes
// out. Pure: no sockets, no clock (`now` is seconds of any monotonic clock), one thread.
#pragma once

#include <string>
#include <vector>

#include "cli/job/job_rendezvous.h"
#include "cli/job/stall_book.h"
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
  bool verbose = false;
  double stall_warn_s = 0;   // 0: nobody looks
  double stall_abort_s = 0;  // 0: never
  bool compat_horovod = false;
};

inline constexpr int kAllHosts = -1;

struct Action {
  enum Kind {
    kLaunch,  // send Launch to every host
    kSend,    // send `command` to `host`, or to kAllHosts: those whose link is open
    kSay,     // show `text` to the person
  } kind;
  int host = kAllHosts;
  v1::Command command = {};
  std::string text = {};
};

class JobState {
 public:
  JobState(const Topology& topology, const JobPolicy& policy, double now);

  // Hosts. Each index is one of the topology's.
  void HostGreeted(int host, double now);  // its link is open
  // It never spoke: cause, remedy and evidence are in `fault`.
  void HostNotStarted(int host, const HostFact& fault, double now);
  void HostLost(int host, const std::string& cause, double now);
  // How the lost host's daemon (or its ssh) ended, learned after the loss.
  void HostDetail(int host, const LinkEnd& end, double now);
  void Heard(int host, const v1::Event& event, double now);

  // Output. A stream ends once; while paused the console is not taking any.
  void StreamMoved(int rank, bool end, double now);
  void OutputPaused(bool paused, double now);

  // The person and hvdrun's own processes.
  void Signalled(int signal, double now);
  void ProcessLost(Ending ending, const std::string& text, double now);

  // hvdrun stood still for so long, until now.
  void Paused(double seconds, double now);

  void Tick(double now);
  double deadline() const;        // when Tick is due
  double start_deadline() const;  // hosts that have not spoken by then are to be reported
  bool starting() const { return !launched_all_ && !stopping_; }
  bool finished() const { return finished_; }
  // Every rank has ended, or is being stopped.
  bool ending() const { return stopping_ || running_ == 0; }

  std::vector<Action> TakeActions();
  const JobFacts& facts() const { return facts_; }
  JobFacts* mutable_facts() { return &facts_; }  // for what only the driver knows: the job's name

 private:
  void OnLaunched(int host, const v1::Launched& launched, double now);
  void OnLaunchFailed(int host, const v1::LaunchFailed& failed, double now);
  void OnExited(const v1::RankExited& exit, double now);
  void OnBroke(const v1::RankBroke& broke, double now);
  void OnInitFailed(const v1::RankInitFailed& failed, double now);
  std::string InitFailures() const;
  void OnJoined(const v1::RankJoined& joined, double now);
  void OnAddresses(int host, const v1::HostAddresses& addresses, double now);
  void OnLeft(int host, const v1::RankLeft& left);
  void NoteCause(uint32_t rank);
  bool CauseRuns() const;
  // job_death.cc
  void OnDied(int host, const v1::MemberDied& died);
  void NoteGone(int rank, const std::string& why);
  void EndUnstartable(int gone);
  std::string SayExit(const v1::RankExited& exit) const;
  void TellAborted(int host, uint64_t epoch, const std::string& cause);
  // job_stall.cc
  void OnStallDue(double now);
  void OnPending(int host, const v1::HostPending& pending, double now);
  void TellStall(double now);
  bool OthersNeeded(int rank) const;

  void Send(int host, v1::Command command);
  void Say(std::string text);
  // `epoch`: only this one; 0: all.
  void Abort(const std::string& cause, uint64_t epoch = 0);
  // job_end.cc, with Signalled, ProcessLost and Tick
  void Stop(const std::string& cause, bool kill, double now);
  void StopForVictim(const std::string& cause, double patience_s, double now);
  void LeaseEnded(int host, double now);
  void EndPaused(double now);
  void End(Ending ending, const std::string& text, double now);
  void Settle(double now);
  bool StopDone(double now);
  bool StreamsDone(double patience_s, double now);
  void WakeAt(double when) { deadline_ = std::min(deadline_, when); }
  double Since(double now) const { return now - started_; }

  const JobPolicy policy_;
  JobFacts facts_;
  JobRendezvous epochs_;
  StallBook stalls_;
  double stall_deadline_ = 0;     // for the hosts' answers
  bool stall_due_again_ = false;  // another host has noticed one meanwhile
  const double started_;
  uint64_t told_aborted_ = 0;      // the newest epoch whose abort the other hosts have been told
  std::string death_;              // the first that no abort explains, and that the job ends for
  std::vector<std::string> gone_;  // by rank: why it comes to no other epoch; empty: it may
  bool launch_sent_ = false;
  bool launched_all_ = false;
  bool stopping_ = false;
  // Whose rank's broken link began the stop; a fault of this host explains it. -1: none.
  int broke_host_ = -1;
  bool told_ = false;  // the person knows that we are stopping
  bool finished_ = false;
  std::string victim_cause_;  // to stop for, unless the rank that is the cause ends by itself…
  double victim_until_ = 0;   // … until then; 0: no victim yet
  std::string stop_cause_;
  double stop_since_ = 0;
  double stop_deadline_ = 0;
  double faults_until_ = 0;  // other hosts' launch faults are gathered until then
  double last_fault_ = 0;    // when the newest host was lost
  double paused_s_ = 0;      // hvdrun stood still for so long …
  double paused_until_ = 0;  // … until then
  int interrupts_ = 0;
  int running_ = 0;         // ranks that have not ended
  int open_streams_ = 0;    // of started ranks
  double last_output_ = 0;  // or the last exit, if later
  bool output_paused_ = false;
  std::vector<int> streams_ended_;  // by rank
  std::vector<bool> detail_known_;  // by host
  double deadline_ = 0;
  std::vector<Action> actions_;
};

}  // namespace hvd
