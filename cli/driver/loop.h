// SPDX-License-Identifier: Apache-2.0
// The driver itself: what RunDriver runs. One thread; epoll over the console, the spawner, the
// hosts that are being reached and the bell of the links. It takes what comes to the part whose it
// is, and has done what the job's state table wants.
#pragma once

#include <limits>
#include <vector>

#include "base/clock.h"
#include "cli/driver/console_talk.h"
#include "cli/driver/discovery.h"
#include "cli/driver/driver.h"
#include "cli/driver/driver_hosts.h"
#include "cli/driver/host_feed.h"
#include "cli/driver/host_starts.h"
#include "cli/driver/host_talk.h"
#include "cli/driver/last_words.h"
#include "cli/driver/poll.h"
#include "cli/driver/store.h"
#include "cli/driver/timeline_asked.h"
#include "cli/job/job_state.h"
#include "cli/link/link.h"

namespace hvd::cli {

class Driver {
 public:
  explicit Driver(DriverSetup setup);

  void Run();

 private:
  // The loop.
  void Turn();
  void Take(const DriverPoll::Ready& ready);
  double NextDeadline() const;
  void NotePause(double meant);
  void TakeArrivals();
  void TickClocks();
  void CarryOut();
  void Do(const Action& action);
  void WaitForTimeline();

  // Hosts: each part is told.
  void AddHost(HostTarget target);
  void ReachHost(const HostSlots& host);
  void DropHost(int host);
  void Prepare(int host);
  DiscoveryHandlers DiscoveryWays();

  DriverSetup setup_;
  const RunOptions& options_;
  const Topology topology_;  // at the job's start: empty where members come and go
  JobState state_;
  DriverHosts hosts_;
  DriverPoll poll_;
  DaemonLinks links_;
  DriverStore store_;
  HostFeed feed_;
  ConsoleTalk console_;
  HostStarts starts_;
  Discovery discovery_;
  TimelineAsks timeline_;
  HostTalk talk_;
  LastWords last_words_;
  double next_look_ = 0;                                         // at the leases
  double turned_at_ = MonotonicSeconds();                        // when the loop last was awake
  double give_up_at_ = std::numeric_limits<double>::infinity();  // waiting for what is left
};

}  // namespace hvd::cli
