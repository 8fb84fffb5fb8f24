// SPDX-License-Identifier: Apache-2.0
// The driver's talk with the daemons over open links: what they tell, their ranks' output, and
// whether they are alive. One thread.
#pragma once

#include <string>
#include <vector>

#include "cli/driver/console_talk.h"
#include "cli/driver/driver_hosts.h"
#include "cli/driver/host_feed.h"
#include "cli/driver/host_starts.h"
#include "cli/driver/store.h"
#include "cli/driver/timeline_asked.h"
#include "cli/front/words/run_options.h"
#include "cli/job/job_state.h"
#include "cli/link/link.h"

namespace hvd::cli {

class HostTalk {
 public:
  // All of them outlive it.
  struct Parts {
    const RunOptions* options;
    DriverHosts* hosts;
    JobState* state;
    DaemonLinks* links;
    DriverStore* store;
    ConsoleTalk* console;
    HostFeed* feed;
    HostStarts* starts;
    TimelineAsks* timeline;
  };
  // `topology`: at the job's start.
  HostTalk(const Topology& topology, const Parts& parts);

  void Take(std::vector<Arrival> arrivals);
  // To the host, or to kAllHosts: those whose link is open.
  void Send(int host, const v1::Command& command);
  // The beats go and come without us; seldom looking is enough, as no lease ends before its
  // deadline. Returns when to look again.
  double LookAtLeases(double now);
  // Tells hosts how much of their output has gone on. Not while the console is slow.
  void Acknowledge();
  // Says of hosts whose link has ended while its remote shell lives on what may be the reason.
  void ExplainEnds();

 private:
  void OnEvent(int host, const v1::Event& event);
  void OnOutput(int host, v1::OutputChunk* chunk);
  void PassOutput(int index, const v1::OutputChunk& chunk);
  void TellRank(int index);
  void OnLinkEnded(int host);
  void GiveUp(int host, double now);

  const Parts parts_;
  // To the console, by member - 1. It takes a member for the rank of the same index where members
  // stay; -2: it has been told nothing.
  std::vector<int> told_ranks_;
};

}  // namespace hvd::cli
