// SPDX-License-Identifier: Apache-2.0
// The owner of a job on this host: takes the driver's commands, and ends the job when the driver,
// the lease or the shim is lost. The ranks and their stop are classes of their own. Its state
// belongs to one thread, the one that calls Run (the one that forked the shim).
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/loop.h"
#include "daemon/job/host_ranks.h"
#include "daemon/job/host_stop.h"
#include "daemon/job/lease.h"
#include "daemon/job/parting.h"
#include "daemon/job/supervisor.h"
#include "hvd/v1/link_a.pb.h"

namespace hvd::daemon {

class Daemon {
 public:
  // How long nothing may be heard from a driver that has not launched its job yet.
  static constexpr Clock::duration kLaunchPatience = std::chrono::minutes(1);

  // `shim` may be an error: then every launch fails with it. `emit` takes events for the driver; it
  // is called from several threads.
  Daemon(absl::StatusOr<ShimProcess> shim, std::function<void(v1::Event)> emit,
         Clock::duration launch_patience = kLaunchPatience);

  // Any thread.
  void Receive(v1::Command command);
  void DriverGone(std::string why);
  // The driver has echoed the beat sent at `sent`.
  void Echoed(TimePoint sent);
  // A signal to hvdd itself asks it to end: the driver is told that this host is lost, and why. A
  // second one does not wait for the driver to hear it.
  void Leave(std::string why);
  // TERM: in an elastic job the first one asks that the others go on without this host.
  void Terminate(std::string why);
  // To each rank of this host.
  void PassOn(int signal);
  OutputQueue* output() { return &output_; }
  StoreRelay* store() { return &store_; }
  int slots() const { return slots_.load(); }

  // Until the job on this host is over and nobody is left to tell.
  void Run();
  Loop* loop() { return &loop_; }

 private:
  void AwaitLaunch();
  void Handle(const v1::Command& command);
  void HandlePrepared(const v1::Command& command);
  void Prepare(const v1::PrepareHost& prepare);
  void WatchLease();
  void OnReport(const ShimReport& report);

  // daemon_stop.cc
  void LoseDriver(const std::string& why);
  void EndWithoutDriver(const std::string& why);
  void OnShimLost(const std::string& how);
  void BeginStop(bool kill, const std::string& cause);
  void BeginStop(const v1::Stop& stop);
  void SetShimsLease(bool kill);
  void MaybeFinish();
  void MaybeExit();

  void Notify(std::string text);
  void Emit(v1::Event event);
  bool elastic() const { return ranks_ != nullptr && ranks_->job().elastic(); }

  Loop loop_;
  const std::function<void(v1::Event)> emit_;
  const Clock::duration launch_patience_;
  std::atomic<TimePoint> heard_{Clock::now()};  // when a beat that the driver has echoed was sent
  OutputQueue output_;
  StoreRelay store_;
  absl::Status no_shim_;
  std::unique_ptr<Supervisor> supervisor_;  // null: no_shim_ says why
  bool shim_lost_ = false;
  std::optional<RenewedLease> lease_;  // with a shim
  std::atomic<int> slots_{0};
  HostStop stop_;
  Parting parting_;
  std::unique_ptr<HostRanks> ranks_;  // null: no host has been prepared
};

}  // namespace hvd::daemon
