// SPDX-License-Identifier: Apache-2.0
// What ends the job: what for, since when, and how long hosts may take to end their ranks. The
// person's signals, a manager's words and hvdrun's own troubles come here. Pure, one thread.
#pragma once

#include <string>

#include "cli/job/job_book.h"

namespace hvd::cli {

class JobStop {
 public:
  explicit JobStop(JobBook* book) : book_(book) {}

  bool begun() const { return stopping_.begun; }
  double since() const { return stopping_.since; }
  double until() const { return stopping_.until; }  // then hosts are not waited for any longer

  // `running`: so many ranks have not ended.
  void Signalled(int signal, int running, double now);
  // The manager's notice. It may come several times, to a process and to its group, and no person
  // is in a hurry.
  void Noticed(double now);
  // A manager ends the job, and this is how it says so.
  void ManagerStops(const std::string& words, double now);
  void ProcessLost(Ending ending, const std::string& text, double now);
  // hvdrun stood still for so long, until now. `launched`: hosts may have noticed.
  void Paused(double seconds, bool launched, double now);
  // A host has not heard hvdrun for the length of its lease. True: a pause of hvdrun's explains it,
  // and the job ends for that.
  bool ExplainsSilence(double now);

  // The job ends for what is neither a rank's nor a host's fault.
  void End(Ending ending, const std::string& text, double now);
  // A rank's or a host's fault ends it.
  void Stop(const std::string& cause, double now) { Stop(cause, false, now); }
  // The stop goes on, and what its ranks still wait for never comes.
  void EndAgreement(const std::string& why);
  // A rank has failed because of another, which aborted their epoch and still runs: how that one
  // ends says more, so it is not stopped at once.
  void AwaitCulprit(const std::string& cause, double patience_s, double now);
  // The culprit has ended. True: a victim's stop has waited for that, and begins.
  bool CulpritEnded(double now);
  // A rank of this host has broken its link, for which a stop may begin. A fault of the host that
  // comes later explains it.
  void NoteBroken(int host) { broke_host_ = host; }
  // Whether a fault of the host is only what the stop brings about.
  bool Explains(int host) const { return stopping_.begun && host != broke_host_; }
  // A death that no abort explains. The first is what the job ends for.
  void NoteDeath(const std::string& what) {
    if (death_.empty()) death_ = what;
  }
  const std::string& death() const { return death_; }

  void Tick(double now);
  double deadline() const;  // when Tick is due

 private:
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
  struct Victim {
    std::string cause;
    double until = 0;  // 0: there is none
  };
  struct Pause {
    double seconds = 0;
    double until = 0;
  };

  void Terminate(const std::string& text, double now);
  void EndPaused(double now);
  void Stop(const std::string& cause, bool kill, double now);
  void SendStop(const std::string& cause, bool kill);
  double GraceS() const;

  JobBook* const book_;
  Stopping stopping_;
  Victim victim_;
  Pause pause_;  // of hvdrun itself
  int interrupts_ = 0;
  bool noticed_ = false;  // the manager's notice has come
  std::string death_;     // the first that no abort explains
  int broke_host_ = -1;   // whose rank's broken link began the stop; -1: none
};

}  // namespace hvd::cli
