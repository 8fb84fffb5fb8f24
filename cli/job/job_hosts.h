// SPDX-License-Identifier: Apache-2.0
// Hosts, from the first word to the last, and what is wrong with one: its facts, and whether the
// job ends for it. Pure, one thread.
#pragma once

#include <string>

#include "cli/job/crew.h"
#include "cli/job/job_book.h"
#include "cli/job/job_roll.h"
#include "cli/job/job_stop.h"
#include "cli/reach/ssh_failure.h"

namespace hvd::cli {

class JobHosts {
 public:
  // All of them outlive it.
  struct Parts {
    JobBook* book;
    JobStop* stop;
    JobRoll* roll;
    Crew* crew;
  };
  explicit JobHosts(const Parts& parts) : parts_(parts) {}

  void Greeted(int host, double now);
  void NotStarted(int host, const HostFact& fault, double now);
  void Lost(int host, const std::string& cause, double now);
  void Detail(int host, const LinkEnd& end);
  void Launched(int host, const v1::Launched& launched);
  void LaunchFailed(int host, const v1::LaunchFailed& failed, double now);
  void Stopped(int host, const v1::Stopped& stopped, double now);
  void LeaseEnded(int host, double now);

  // Reports the hosts that have not done within the start timeout what the start asks of them.
  void ReportOverdue(double now);
  double NextStartDeadline() const;
  // While the job is being stopped: no host is waited for any more. Else *wake is when to look
  // again at the latest.
  bool Done(double now, double* wake) const;

 private:
  void EndForLaunch(int host, double now);
  bool GoesOnWithout(const HostFact& fact) const { return parts_.crew->changes() || fact.past; }
  double StartDeadline(int host) const;
  bool StopsAlike(double now) const;
  void ReportBindings(int host, const v1::Launched& launched);
  std::string RankIn(int host, int slot) const;
  HostFact& Of(int host) const { return parts_.book->facts.hosts[host]; }
  int count() const { return static_cast<int>(parts_.book->facts.hosts.size()); }

  const Parts parts_;
  double faults_until_ = 0;  // other hosts' launch faults are gathered until then; 0: there is none
  double last_fault_ = 0;    // when the newest host was lost
};

}  // namespace hvd::cli
