// SPDX-License-Identifier: Apache-2.0
// Who is there: how far the hosts have come with the launch, which ranks have not ended, and whose
// output may still come. Pure, one thread.
#pragma once

#include <map>

#include "cli/job/outbox.h"
#include "cli/job/output_drain.h"
#include "cli/report/verdict.h"

namespace hvd::cli {

class JobRoll {
 public:
  // The facts outlive it; who they have already is planned.
  explicit JobRoll(JobFacts* facts);

  int running() const { return running_; }  // ranks that have not ended
  // Some host has been told to launch.
  bool launch_sent() const { return launch_sent_; }
  void LaunchSent() { launch_sent_ = true; }
  // All hosts that the job has by now have launched, or are gone.
  bool launched_all() const { return launched_all_; }

  void AddHost(HostFact fact);
  void Launched(int host, v1::Containment containment);
  void AddRank(RankFact fact);
  void Started(int rank, uint32_t pid);
  void Exited(int rank, const v1::RankExited& exit, double now);
  // What has not come from the ranks of this host never will.
  void LoseRanks(int host);

  // Output. A stream ends once; while paused the console is not taking any.
  void StreamMoved(int rank, bool end, double now);
  void OutputPaused(bool paused, double now);
  void MayFollow(double now) { output_.MayFollow(now); }
  bool OutputDone(double patience_s, double now) const { return output_.Done(patience_s, now); }
  double NextLook(double patience_s) const { return output_.NextLook(patience_s); }
  int open_streams() const { return output_.open(); }

  // The host has stopped while others go on: its link lives until the last words of its ranks have
  // come, on another stream than its own last word.
  void Drain(int host, double now);
  // Ends the links of those that are through. Returns when to look again.
  double DropDrained(Outbox* outbox, double now);

 private:
  bool IsSilent(int host) const;

  JobFacts* const facts_;
  OutputDrain output_;
  std::map<int, double> drained_;  // hosts, and until when their ranks' output is waited for
  int running_ = 0;
  bool launch_sent_ = false;
  bool launched_all_ = false;
};

}  // namespace hvd::cli
