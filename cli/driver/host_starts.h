// SPDX-License-Identifier: Apache-2.0
// The driver's hosts until their links are open: the spawner starts what reaches them, and their
// first words are read. One thread.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>

#include "base/descriptor.h"
#include "cli/driver/console_talk.h"
#include "cli/driver/driver_hosts.h"
#include "cli/driver/poll.h"
#include "cli/front/words/run_options.h"
#include "cli/job/job_state.h"
#include "cli/link/frame.h"
#include "cli/link/link.h"
#include "cli/reach/ssh_command.h"

namespace hvd::cli {

class HostStarts {
 public:
  // All of them outlive it.
  struct Parts {
    const RunOptions* options;
    const DaemonStart* start;
    DriverHosts* hosts;
    JobState* state;
    DaemonLinks* links;
    ConsoleTalk* console;
    DriverPoll* poll;
    // Takes a kLookText or kLookEnded of the spawner's.
    std::function<void(const Frame&)> look;
  };
  HostStarts(Descriptor spawner, const Parts& parts);

  void Begin();        // looks for what the spawner sends
  void TakeSpawner();  // what it has sent
  // Sends it a frame; false: not now.
  bool Ask(const Frame& frame);

  // The spawner has been told of the first `hosts` at the launch, and starts some of these unasked.
  void NoteUnasked(int hosts);
  // How a host that is found while the job runs is reached.
  HostTarget TargetFor(const HostSlots& host) const;
  // Asks the spawner for the next ones, as many as may be under way.
  void StartNext();
  // Those whose time for another attempt has come.
  void StartAgain(double now);
  double deadline() const;  // when StartAgain is due
  // It is lost, or was let go: nothing that was started to reach it lives on.
  void Drop(int host);
  // Ends what was started to reach it.
  void Kill(int host) { AskSpawner(FrameKind::kKill, host); }
  // A remote shell that hangs does not see that we are gone.
  void EndLogins();

  void OnHello(int host);
  void OnErrors(int host);
  void ReportOverdue(int host);

 private:
  void AskSpawner(FrameKind kind, int host);
  void AskToStart(int host);
  void SpawnerLost();
  void OnStarted(int host, Frame* frame);
  void OnChildExited(int host, int wait_status);
  void ExplainExit(int host, int wait_status);
  bool TriesAgain(int host, const StartFailure& failure);
  void NotStarted(int host, HostFact fault);
  void RefuseTwin(int host, int twin);
  void SayCommand(int host);
  bool MayStartNext() const;

  Descriptor spawner_;
  const Parts parts_;
  std::unordered_map<std::string, int> greeted_;  // hosts by what their hvdd says they are
  int next_start_ = 0;                            // the first that the spawner was not asked for
};

}  // namespace hvd::cli
