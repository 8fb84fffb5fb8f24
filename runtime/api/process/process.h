// SPDX-License-Identifier: Apache-2.0
// The one global: what this process has of hvd. Initialising and shutting down are serialised;
// calls keep the engine (CallTarget), so that a shutdown on one thread cannot take it away
// under another.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "runtime/api/handles/handle_table.h"
#include "runtime/api/process/job_link.h"
#include "runtime/api/process/job_store.h"
#include "runtime/api/process/joined_epoch.h"
#include "runtime/api/process/origin.h"
#include "runtime/device/ways/devices.h"
#include "runtime/errors/forked.h"
#include "runtime/session/arena.h"
#include "runtime/sets/process_sets.h"
#include "runtime/state/past_epochs.h"
#include "runtime/state/state_home.h"

namespace hvd::rt {

// Process sets that hvd_init makes: their ranks.
using StaticSets = std::vector<std::vector<int32_t>>;

class Process {
 public:
  static Process& Get();
  // In a child that was forked from a process that has used hvd.
  static bool forked() { return IsForkedChild(); }

  // `sets`: what AddStaticSets will be given; compared with the other ranks'.
  absl::Status Init(const StaticSets& sets);
  // After the first Init of an epoch only; collective. Nothing when it has been called already.
  // After an error this rank has left the epoch.
  absl::Status AddStaticSets(const StaticSets& sets);
  absl::Status Shutdown();
  // Leaves the epoch, broken or not, and joins the next; AddStaticSets follows.
  absl::Status Reset(const StaticSets& sets);
  // Returns this process's share of the host: the same for the process's life; -1: it has not
  // joined yet.
  int share() const { return share_.load(); }
  // Asks the launcher's daemon, once.
  absl::StatusOr<bool> IsElastic();
  // Has hvdrun write the timeline of all ranks to `path`, or end it (empty). Waits until it is so.
  absl::Status AskTimeline(const std::string& path);
  absl::Status AskGrace(uint64_t milliseconds);

  // The epoch that this process has joined; number 0: it is in none.
  hvd_epoch_t epoch() const { return joined_.epoch(); }
  // The global set's. Null when not initialised.
  std::shared_ptr<Engine> engine() const { return joined_.engine(); }
  ProcessSets& sets() { return sets_; }
  HandleTable& handles() { return handles_; }
  // The job's key-value store, before hvd_init as well as after hvd_shutdown; it is sought at the
  // first call. Lives as long as the process.
  absl::StatusOr<Store*> store();
  // Behind hvd_alloc; lives as long as the process.
  Arena& arena() { return arena_; }
  Devices& devices() { return devices_; }
  // Returns the part of the program's state that is kept.
  StateHome& state_home() { return state_home_; }

 private:
  Process();
  absl::Status OpenLink(const LinkName& link) ABSL_EXCLUSIVE_LOCKS_REQUIRED(life_mutex_);
  absl::Status JoinNext(const StaticSets& sets) ABSL_EXCLUSIVE_LOCKS_REQUIRED(life_mutex_);
  absl::Status InitCaught(const StaticSets& sets) ABSL_EXCLUSIVE_LOCKS_REQUIRED(life_mutex_);
  absl::Status InitLocked(const StaticSets& sets) ABSL_EXCLUSIVE_LOCKS_REQUIRED(life_mutex_);
  absl::StatusOr<std::unique_ptr<EpochWorld>> JoinEpoch(const EngineConfig& config,
                                                        const StaticSets& sets,
                                                        std::unique_ptr<Tuner>* tuner)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(life_mutex_);
  // The process is in the epoch from here on.
  void Begin(const EngineConfig& config, std::unique_ptr<EpochWorld> world,
             std::unique_ptr<Tuner> tuner) ABSL_EXCLUSIVE_LOCKS_REQUIRED(life_mutex_);
  void ShutdownLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(life_mutex_);

  ProcessOrigin origin_;
  Mutex life_mutex_;  // held during Init and Shutdown
  JobLink link_ ABSL_GUARDED_BY(life_mutex_);
  PastEpochs past_ ABSL_GUARDED_BY(life_mutex_);
  bool joining_ ABSL_GUARDED_BY(life_mutex_) = false;            // hvd_init has come so far
  bool static_sets_added_ ABSL_GUARDED_BY(life_mutex_) = false;  // in this epoch
  std::atomic<int> share_{-1};
  std::atomic<int> is_elastic_{-1};  // -1: not known yet
  JoinedEpoch joined_;
  StateHome state_home_;
  ProcessSets sets_;
  HandleTable handles_;
  Arena arena_;
  Devices devices_;
  JobStore store_;
};

}  // namespace hvd::rt
