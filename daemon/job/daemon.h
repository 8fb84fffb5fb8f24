// SPDX-License-Identifier: Apache-2.0
// The owner of a job on this host: carries the driver's commands to the shim, the relay and link B,
// gathers what they report, and ends the job when the driver, the lease or the shim is lost. Its
// state belongs to one thread, the one that calls Run (the one that forked the shim).
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/loop.h"
#include "daemon/connections/store_relay.h"
#include "daemon/job/launch_plan.h"
#include "daemon/job/lease.h"
#include "daemon/job/rank_table.h"
#include "daemon/job/stop_plan.h"
#include "daemon/job/supervisor.h"
#include "daemon/link_b/link_server.h"
#include "daemon/relay/relay.h"
#include "daemon/watch/oom_watch.h"
#include "hvd/v1/link_a.pb.h"
#include "proto/deadlines.h"
#include "proto/page/host_page.h"

namespace hvd {

// How the process that hvdd started as a rank came to its end.
struct ProcessEnd {
  int slot = 0;
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

  // daemon_launch.cc
  void Prepare(const v1::PrepareHost& prepare);
  void Propose(const v1::EpochPropose& propose);
  void Spawn(const v1::SpawnSlots& spawn);
  void NeverStart(const v1::Seat& seat, const std::string& why);
  void NeverStartFrom(const v1::SpawnSlots& spawn, int first, const std::string& why);
  bool MayTake(const v1::Seat& seat) const;
  v1::SpawnSlots Seatable(const v1::SpawnSlots& spawn, const absl::Status& placed);
  void RefuseSeat(const v1::Seat& seat, const absl::Status& placed);
  void TakeSlot(const v1::Seat& seat);
  absl::Status PlaceNewMembers(const v1::SpawnSlots& spawn);
  absl::Status StartRank(const v1::Seat& seat);
  void StartLinks();
  void StartRelay();
  void TellLaunched();
  void TellAwaited();
  void WarnOfLimits();
  void FailLaunch(int exit_code, const std::string& message);

  void OnReport(const ShimReport& report);
  void OnStarted(int slot, int pid);
  void OnEnded(const ProcessEnd& end);
  void TellDied(const ProcessEnd& end, const LinkFacts& facts);
  void TellEnd(int slot);

  // daemon_stop.cc
  void BeginLease(std::chrono::duration<double> length);
  void WatchLease();
  void LoseDriver(const std::string& why);
  void DriverSilent(const std::string& why);
  void EndWithoutDriver(const std::string& why);
  void OnShimLost(const std::string& how);
  void Retire(const v1::RetireSlot& retire);
  void Remove(int slot, const std::string& cause);
  void TermRetired(int slot, uint64_t member);
  void KillRetired(int slot, uint64_t member);
  void SignalRanks(int signal);
  void BeginStop(const v1::Stop& stop);
  void BeginStop(bool kill, const std::string& cause);
  void TellLinksOfStop(const v1::Stop& stop);
  void Do(StopPlan::Do what);
  void ArmStop();
  void NoteEmpty();
  void FinishStop(int survivors);
  void MaybeFinish();
  void MaybeExit();

  void Notify(std::string text);
  void Emit(v1::Event event);
  std::string mark() const;
  bool elastic() const { return prepared_.has_value() && prepared_->elastic(); }
  // Nobody runs in that slot.
  bool vacant(int slot) const { return members_[slot] == 0 || table_->ended(slot); }

  Loop loop_;
  const std::function<void(v1::Event)> emit_;
  const Clock::duration launch_patience_;
  std::atomic<TimePoint> heard_{Clock::now()};  // when a beat that the driver has echoed was sent
  OutputQueue output_;
  StoreRelay store_;
  absl::Status no_shim_;
  std::unique_ptr<Supervisor> supervisor_;  // null: no_shim_ says why
  bool shim_lost_ = false;

  // The job as PrepareHost told it; empty before.
  std::optional<v1::PrepareHost> prepared_;
  HostFacts facts_;  // at PrepareHost: what a slot gets does not change with its workers
  HostPlan shares_;
  // The newest that has been proposed; elastic: the world by which the newest workers were placed.
  std::optional<EpochPlan> plan_;
  int spawned_ = 0;  // slots that have got a member
  std::atomic<int> slots_{0};
  std::array<std::atomic<uint64_t>, kMaxLocalRanks> members_{};  // by slot
  std::optional<RankTable> table_;
  std::vector<TimePoint> ended_;  // by slot
  std::unique_ptr<LinkServer> links_;
  std::unique_ptr<Relay> relay_;
  std::optional<OomWatch> oom_;
  bool launched_told_ = false;
  bool any_started_ = false;
  bool launch_failed_ = false;
  bool drain_asked_ = false;
  int ends_told_ = 0;
  bool empty_ = true;  // nothing lives in the containment

  std::optional<RenewedLease> lease_;  // with a shim
  std::chrono::duration<double> grace_{kDefaultGraceS};
  std::optional<StopPlan> stop_;
  Loop::TimerId stop_timer_{};
  std::optional<int> survivors_;  // the stop is over
  bool stopped_told_ = false;
  bool driver_gone_ = false;    // its connection has ended
  bool driver_silent_ = false;  // the lease has ended
  bool leaving_ = false;        // by a signal
};

}  // namespace hvd
