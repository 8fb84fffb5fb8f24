// SPDX-License-Identifier: Apache-2.0
// The one global: this process's link and engines. Initialising and shutting down are serialised;
// calls keep the engine (CallTarget), so that a shutdown on one thread cannot take it away
// under another.
#pragma once

#include <atomic>
#include <memory>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "runtime/adoption/adopted.h"
#include "runtime/api/handles/handle_table.h"
#include "runtime/device/gpus.h"
#include "runtime/device/nccl/nccl_process.h"
#include "runtime/device/staged/host_way.h"
#include "runtime/engine/engine.h"
#include "runtime/errors/forked.h"
#include "runtime/session/arena.h"
#include "runtime/session/store.h"
#include "runtime/sets/process_sets.h"
#include "runtime/state/state_home.h"

namespace hvd {

// Process sets that hvd_init makes: their ranks.
using StaticSets = std::vector<std::vector<int32_t>>;

class Process {
 public:
  static Process& Get();

  // `sets`: what AddStaticSets will be given; compared with the other ranks'.
  absl::Status Init(const StaticSets& sets);
  // After the first Init of an epoch only; collective. Nothing when it has been called already.
  // After an error this rank has left the epoch.
  absl::Status AddStaticSets(const StaticSets& sets);
  absl::Status Shutdown();
  // Leaves the epoch, broken or not, and joins the next; AddStaticSets follows.
  absl::Status Reset(const StaticSets& sets);
  // The one that this process has joined; number 0: it is in none.
  hvd_epoch_t epoch() const;
  // Returns this process's share of the host: the same for the process's life; -1: it has not
  // joined yet.
  int share() const { return share_.load(); }
  // Asks the launcher's daemon, once.
  absl::StatusOr<bool> IsElastic();
  // Returns the part of the program's state that is kept.
  StateHome& state_home() { return state_home_; }
  // Has hvdrun write the timeline of all ranks to `path`, or end it (empty). Waits until it is so.
  absl::Status AskTimeline(const std::string& path);
  absl::Status AskGrace(uint64_t milliseconds);
  // The global set's. Null when not initialised.
  std::shared_ptr<Engine> engine() const;
  ProcessSets& sets() { return sets_; }
  const ProcessSets& sets() const { return sets_; }
  HandleTable& handles() { return handles_; }
  // The job's key-value store, before hvd_init as well as after hvd_shutdown; it is sought at the
  // first call. Lives as long as the process.
  absl::StatusOr<Store*> store();
  // Behind hvd_alloc; lives as long as the process.
  Arena& arena() { return arena_; }
  Gpus& gpus() { return gpus_; }
  NcclProcess& nccl() { return nccl_; }
  // Returns the way for tensors on GPUs; it is made at the first call, and stays.
  HostWay& host_way();
  // Null: there was no such call.
  HostWay* used_host_way() const { return used_host_way_.load(std::memory_order_acquire); }
  // In a child that was forked from a process that has used hvd.
  static bool forked() { return IsForkedChild(); }

 private:
  Process();
  // Once: where another launcher has started this process, makes it a rank. Waits for the others.
  absl::Status Adopt();
  const std::vector<std::string>& adopted_environment() const;
  absl::Status OpenSession(const LinkName& link) ABSL_EXCLUSIVE_LOCKS_REQUIRED(life_mutex_);
  void TellInitFailed(const std::string& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(life_mutex_);
  absl::Status JoinNext(const StaticSets& sets) ABSL_EXCLUSIVE_LOCKS_REQUIRED(life_mutex_);
  absl::Status InitLocked(const StaticSets& sets) ABSL_EXCLUSIVE_LOCKS_REQUIRED(life_mutex_);
  absl::Status InitCaught(const StaticSets& sets) ABSL_EXCLUSIVE_LOCKS_REQUIRED(life_mutex_);
  std::shared_ptr<Engine> MakeEngine(std::unique_ptr<EpochWorld> world, const EngineConfig& config,
                                     std::unique_ptr<Tuner> tuner);
  EpochState DescribeEpoch(EpochWorld* world) ABSL_EXCLUSIVE_LOCKS_REQUIRED(life_mutex_);
  void AwaitEnginesEnd();
  absl::StatusOr<std::unique_ptr<EpochWorld>> JoinEpoch(const EngineConfig& config,
                                                        const StaticSets& sets,
                                                        std::unique_ptr<Tuner>* tuner)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(life_mutex_);
  std::unique_ptr<DeviceWork> MakeDevice(const EngineConfig& config, EpochWorld* world);
  void BeginTimelineOf(const EngineConfig& config, const EpochWorld& world)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(life_mutex_);
  void ShutdownLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(life_mutex_);

  Mutex adoption_mutex_;
  bool adoption_tried_ ABSL_GUARDED_BY(adoption_mutex_) = false;
  absl::Status adoption_status_ ABSL_GUARDED_BY(adoption_mutex_);
  std::unique_ptr<Adopted>
      adopted_;       // set once, by Adopt; null: hvdrun has started this, or nobody
  Mutex life_mutex_;  // held during Init and Shutdown
  bool joining_ ABSL_GUARDED_BY(life_mutex_) = false;  // hvd_init has come as far as that
  std::unique_ptr<Session> session_ ABSL_GUARDED_BY(life_mutex_);  // outlives epochs
  bool static_sets_added_ ABSL_GUARDED_BY(life_mutex_) = false;    // in this epoch
  mutable Mutex engine_mutex_;
  Condition engine_ended_;
  int engines_ ABSL_GUARDED_BY(engine_mutex_) = 0;  // global sets' that calls may still hold
  std::shared_ptr<Engine> engine_ ABSL_GUARDED_BY(engine_mutex_);
  hvd_epoch_t epoch_ ABSL_GUARDED_BY(engine_mutex_) = HVD_EPOCH_INIT;
  uint64_t epochs_ ABSL_GUARDED_BY(life_mutex_) = 0;      // that this process has been in
  bool has_broken_ ABSL_GUARDED_BY(life_mutex_) = false;  // the one before
  std::atomic<int> share_{-1};
  std::atomic<int> is_elastic_{-1};  // -1: not known yet
  StateHome state_home_;
  ProcessSets sets_;
  HandleTable handles_;
  Arena arena_;
  Gpus gpus_;
  NcclProcess nccl_;
  Mutex host_way_mutex_;
  std::unique_ptr<HostWay> host_way_ ABSL_GUARDED_BY(host_way_mutex_);
  std::atomic<HostWay*> used_host_way_{nullptr};
  Mutex store_mutex_;
  std::unique_ptr<Store> store_ ABSL_GUARDED_BY(store_mutex_);  // made once, and stays
};

}  // namespace hvd
