// SPDX-License-Identifier: Apache-2.0
// The shim: a small process with one thread and no gRPC that alone spawns, signals and reaps the
// ranks. hvdd tells it what to do over a ShimChannel; when hvdd is gone, or its lease runs out, it
// kills everything and ends.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/loop.h"
#include "daemon/shim/claimed_workers.h"
#include "daemon/shim/containment.h"
#include "daemon/shim/lease_word.h"
#include "daemon/shim/process_tree.h"
#include "daemon/shim/shim_channel.h"
#include "daemon/shim/spawn.h"

namespace hvd::daemon {

class Shim {
 public:
  // `lease` outlives this.
  Shim(ShimChannel channel, Containment containment, Descriptor outer_fdinfo,
       const LeaseWord* lease);

  // Reports kReady, then serves until hvdd is gone. Ends the process.
  [[noreturn]] void Serve();

 private:
  struct Worker {
    SpawnOrder order;
    int pid = -1;
    int outer_pid = -1;  // as hvdd sees it
    Descriptor pidfd;
    Descriptor exec_end;  // valid until the command runs or has failed to
  };

  void TellReady();
  void OnRequests();
  void Handle(const ShimRequest& request, std::vector<Descriptor> fds);
  void SpawnWorker(int slot, std::vector<Descriptor> fds);
  void TellOfClaimed(const ShimReport& report);
  void TellSpawnFailed(int slot, const Worker& worker, const ExecFailure& failure);
  // Learns whether the exec worked. False: it failed (told).
  bool FinishExec(int slot, Worker* worker);
  void SignalWorker(const ShimRequest& request);
  void TermLeftovers();
  // Kills what a dead member has left, until two looks in a row find nothing.
  void Sweep(const DeadMember& dead, bool again);
  std::set<int> Living() const;  // workers' pids
  void KillAll();
  void Reap();
  void OnExit(int pid, int status);
  int OuterPid(int pidfd) const;
  void WatchLease();
  void UpdateWatch();
  [[noreturn]] void EndEverything();

  ShimChannel channel_;
  Containment containment_;
  Descriptor outer_fdinfo_;  // /proc/self/fdinfo of hvdd's PID namespace
  Descriptor way_back_;      // O_PATH descriptor of the unlinked socket
  Descriptor child_signal_;
  const LeaseWord* const lease_;
  Loop loop_;
  std::map<int, Worker> workers_;  // living ones, by slot
  ClaimedWorkers claimed_;         // likewise, of another launcher
  std::string mark_;               // "HVD_JOB_MARK=…" once known
  bool leftovers_due_ = false;
  bool stopping_ = false;
  bool killing_ = false;
  Loop::TimerId lease_timer_{};
};

}  // namespace hvd::daemon
