// SPDX-License-Identifier: Apache-2.0
// The job's state table: what the hosts, the person and the clock say goes in, what to do comes
// out. Pure: no sockets, no clock (`now` is seconds of any monotonic clock), one thread. It takes
// every event to the part whose it is, and decides when the job is over.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/job/crew.h"
#include "cli/job/job_book.h"
#include "cli/job/job_epochs.h"
#include "cli/job/job_hosts.h"
#include "cli/job/job_ranks.h"
#include "cli/job/job_roll.h"
#include "cli/job/job_stop.h"
#include "cli/job/stall_question.h"

namespace hvd::cli {

class JobState {
 public:
  // If members come and go, `topology` is empty: hosts and ranks come by what is discovered.
  JobState(const Topology& topology, const JobPolicy& policy, double now);

  // All hosts that may work for the job from now on, the oldest first. Once at least, also where
  // the list is fixed; never where members stay.
  void Discovered(const std::vector<HostSlots>& hosts, double now);
  // The first list has never come.
  void DiscoveryFailed(const std::string& why, double now);

  // Hosts. Each index is one of the topology's, or one of kReach.
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
  bool starting() const { return !roll_.launched_all() && !stop_.begun(); }
  bool finished() const { return finished_; }
  // Every rank has ended, or is being stopped.
  bool ending() const { return stop_.begun() || (roll_.running() == 0 && !crew_->changes()); }

  std::vector<Action> TakeActions() { return book_.outbox.Take(); }
  const Members& members() const { return epochs_.members(); }
  const JobFacts& facts() const { return book_.facts; }
  JobFacts* mutable_facts() { return &book_.facts; }  // for what only the driver knows: its name

 private:
  void TakeHostEvent(int host, const v1::Event& event, double now);
  void TakeRankEvent(int host, const v1::Event& event, double now);
  void TickRunning(double now);
  void TellStall(double now);
  void Settle(double now);
  bool StopDone(double now);
  bool OutputDone(double patience_s, double now);

  JobBook book_;
  JobStop stop_;
  JobRoll roll_;
  JobEpochs epochs_;
  StallQuestion stalls_;
  const std::unique_ptr<Crew> crew_;
  JobHosts hosts_;
  JobRanks ranks_;
  bool finished_ = false;
  double deadline_ = 0;
};

}  // namespace hvd::cli
