// SPDX-License-Identifier: Apache-2.0
// The ranks of this host, carried out: gives them what they are started with, hears from shim,
// relay and link B how each ends, and ends one where the driver says so. What may be done the
// HostJob decides. Lives from PrepareHost on; loop thread only.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/loop.h"
#include "daemon/connections/store_relay.h"
#include "daemon/job/host_job.h"
#include "daemon/job/supervisor.h"
#include "daemon/link_b/link_server.h"
#include "daemon/relay/relay.h"
#include "daemon/watch/oom_watch.h"
#include "hvd/v1/link_a.pb.h"

namespace hvd::daemon {

struct HostRanksParts {
  Loop* loop;
  Supervisor* supervisor;
  OutputQueue* output;
  StoreRelay* store;
  std::function<void(v1::Event)> emit;                    // any thread
  std::function<void()> on_told;                          // a rank's whole end, or its files'
  std::function<void(const std::string& why)> on_broken;  // a static job that cannot be started
};

class HostRanks {
 public:
  HostRanks(HostJob job, HostRanksParts parts);

  const HostJob& job() const { return job_; }
  LinkServer* links() { return links_.get(); }
  Relay* relay() { return relay_.get(); }
  // Nothing lives in the containment.
  bool empty() const { return empty_; }

  // What the driver says.
  void Propose(const v1::EpochPropose& propose);
  void Spawn(const v1::SpawnSlots& spawn);
  void Retire(const v1::RetireSlot& retire);
  void Signal(int signal);

  // What the shim says.
  void OnStarted(int slot, int pid);
  void OnSpawnFailed(const ShimReport& report);
  void OnExited(const ShimReport& report);
  // Returns whether it counts: an early word may have crossed a spawn.
  bool OnEmpty();
  // It is lost, and what it held has been swept away.
  void OnShimLost();

  // The stop of all has begun: nobody is started any more.
  void BeginStop(const v1::Stop& stop);
  // CONT and TERM to every living rank.
  void TermAll();

 private:
  void StartRelay();
  void StartLinks();
  void RefuseSeats(const Seating& seating, const absl::Status& placed);
  void StartAll(const v1::SpawnSlots& spawn);
  absl::Status StartRank(const v1::Seat& seat);
  void NeverStart(const v1::SpawnSlots& spawn, int first, const std::string& why);
  void TellLaunched();
  void FailLaunch(int exit_code, const std::string& message);
  void OnEnded(RankDeath end);
  void TellEnd(int slot);
  void TermRetired(int slot, uint64_t member);
  void KillRetired(int slot, uint64_t member);
  Clock::duration grace() const;
  void Notify(std::string text);

  HostJob job_;
  const HostRanksParts parts_;
  OomWatch oom_;
  std::unique_ptr<Relay> relay_;
  std::unique_ptr<LinkServer> links_;
  bool launched_told_ = false;
  bool empty_ = true;
  bool stopping_ = false;
  bool shim_lost_ = false;
};

}  // namespace hvd::daemon
