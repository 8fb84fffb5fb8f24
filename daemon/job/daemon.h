// The owner of a job on this host: carries the driver's commands to the shim, the relay and link B,
// gathers what they report, and ends the job when the driver, the lease or the shim is lost. Its
// state belongs to one thread, the one that calls Run (the one that forked the shim).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/loop.h"
#include "daemon/job/launch_plan.h"
#include "daemon/job/lease.h"
#include "daemon/job/stop_plan.h"
#include "daemon/job/supervisor.h"
#include "daemon/link_b/link_server.h"
#include "daemon/link_b/store_relay.h"
#include "daemon/relay/relay.h"
#include "daemon/watch/oom_watch.h"
#include "daemon/watch/rank_table.h"
#include "hvd/v1/link_a.pb.h"
#include "proto/deadlines.h"

namespace hvd {

// How the process that hvdd started as a rank came to its end.
struct ProcessEnd {
  int rank = 0;    // local
  int status = 0;  // as wait4 gives it
  bool out_of_memory = false;
  bool never_started = false;
  bool with_shim = false;  // the shim was lost, and this process with it
};

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
  OutputQueue* output() { return &output_; }
  StoreRelay* store() { return &store_; }
  // Global number of local rank 0; what OutputQueue's streams count from.
  int first_rank() const { return first_rank_.load(); }
  int local_size() const { return local_size_.load(); }

  // Until the job on this host is over and nobody is left to tell.
  void Run();
  Loop* loop() { return &loop_; }

 private:
  void AwaitLaunch();
  void Handle(const v1::Command& command);

  // daemon_launch.cc
  void Launch(const v1::Launch& launch);
  absl::Status StartRanks(const v1::Launch& launch);
  absl::Status StartRank(int local_rank, const LaunchContext& context);
  void StartLinks(const v1::Launch& launch);
  void StartRelay(const v1::Launch& launch);
  void TellLaunched(const HostFacts& facts);
  void WarnOfLimits(const v1::Launch& launch);
  void FailLaunch(int exit_code, const std::string& message);

  void OnReport(const ShimReport& report);
  void OnStarted(int rank, int pid);
  void OnEnded(const ProcessEnd& end);
  void TellDied(const ProcessEnd& end, const LinkFacts& facts);
  void TellEnd(int rank);

  // daemon_stop.cc
  void BeginLease(std::chrono::duration<double> length);
  void WatchLease();
  void LoseDriver(const std::string& why);
  void OnShimLost(const std::string& how);
  void BeginStop(bool kill, const std::string& cause);
  void Do(StopPlan::Do what);
  void ArmStop();
  void NoteEmpty();
  void FinishStop(int survivors);
  void MaybeFinish();
  void MaybeExit();

  void Notify(std::string text);
  void Emit(v1::Event event);
  std::string mark() const;

  Loop loop_;
  const std::function<void(v1::Event)> emit_;
  const Clock::duration launch_patience_;
  std::atomic<TimePoint> heard_{Clock::now()};  // when a beat that the driver has echoed was sent
  OutputQueue output_;
  StoreRelay store_;
  absl::Status no_shim_;
  std::unique_ptr<Supervisor> supervisor_;  // null: no_shim_ says why
  bool shim_lost_ = false;

  // Of the launch; empty before.
  std::string job_;
  std::optional<LaunchPlan> plan_;
  std::atomic<int> first_rank_{0};
  std::atomic<int> local_size_{0};
  std::optional<RankTable> table_;
  std::vector<TimePoint> ended_;  // by rank
  std::unique_ptr<LinkServer> links_;
  std::unique_ptr<Relay> relay_;
  std::optional<OomWatch> oom_;
  bool launch_failed_ = false;
  int ends_told_ = 0;
  bool empty_ = true;  // nothing lives in the containment

  std::optional<RenewedLease> lease_;  // with a shim
  std::chrono::duration<double> grace_{kDefaultGraceS};
  std::optional<StopPlan> stop_;
  Loop::TimerId stop_timer_{};
  std::optional<int> survivors_;  // the stop is over
  bool stopped_told_ = false;
  bool driver_gone_ = false;
  bool leaving_ = false;  // by a signal
};

}  // namespace hvd
