// SPDX-License-Identifier: Apache-2.0
// How a rank waits for its peers: spin where a core is free, yield while yields stay short, then
// sleep on the host's doorbell. Every wait ends when its condition holds or the epoch is aborted.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "proto/page/host_page.h"
#include "runtime/transport/transport.h"
#include "runtime/transport/usable_cores.h"

namespace hvd::rt {

// How long to spin before yielding and before sleeping; from the cores this host really has for its
// ranks.
struct WaitPolicy {
  int spins = 2000;  // pauses before the first yield
  int yields = 20;   // yields before the first sleep; stops early when one takes over 100 us
  // Ranks share cores: a peer can only publish once this rank has left its core.
  bool oversubscribed = false;
  // `host_cores`: the cores of all local ranks together. A rank that is pinned sees only its own
  // (UsableCores), so whoever knows the host passes it in.
  static WaitPolicy For(int local_size, int host_cores);
};

// Work that a rank moves along while it waits for something else. Step never waits and never throws
// an error away: whoever set the work in motion asks it later.
class BackgroundWork {
 public:
  virtual ~BackgroundWork() = default;
  virtual bool Step() = 0;  // true if something moved
};

// Leaves the core to its other thread for a moment. pause_<processor>.cc
void Pause();

// One an engine (process set) and epoch. Not thread-safe: it belongs to whoever runs the engine at
// the moment. The waiters of one process share its transport and its event fd.
class Waiter {
 public:
  // `page` outlives the waiter. `local_rank`: of the process on its host, whatever the set.
  // `event_fds`: one a local rank (borrowed) in a job of several hosts, else null.
  Waiter(HostPage* page, int local_rank, const int* event_fds, WaitPolicy policy);
  // The transport to progress while waiting; borrowed. With one a rank sleeps on its event fd,
  // without by futex: whoever waits for ranks of its own host alone needs none.
  void set_transport(Transport* transport) { transport_ = transport; }
  // Is stepped in every wait from now on; borrowed; null: nothing.
  void set_background(BackgroundWork* work) { background_ = work; }
  // Whether the thread that waits has another of its process beside it that may be computing: then
  // it leaves the core at once to wait for what comes over a wire.
  void set_beside(bool beside) { beside_ = beside; }
  // Where hvdd sees that this rank gets on in a collective (RankActivity::moves); borrowed; null:
  // nobody looks.
  void set_moves(std::atomic<uint64_t>* moves) { moves_ = moves; }
  // Something that this rank waited for inside a collective has come to pass.
  void NoteMove() {
    if (moves_ == nullptr) return;
    moves_->store(moves_->load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  // A thread that wants to look at the clock: no sleep lasts beyond `time`; max: as long as it
  // must.
  void set_wake_at(std::chrono::steady_clock::time_point time) { wake_at_ = time; }
  // Is called in a wait that takes long, each time that hvdd asks (HostPage::question).
  void set_on_question(std::function<void()> answer) { on_question_ = std::move(answer); }

  // Waits until done() is true. done() is called often and must be cheap; it sees memory as of the
  // last ring. Returns Aborted with the epoch's cause otherwise.
  template <class Done>
  absl::Status Until(Done&& done) {
    // A transport's progress is a system call, as long as many pauses.
    int spins = transport_ == nullptr ? policy_.spins : policy_.spins / kPausesPerProgress;
    if (YieldsToComputing()) spins = 1;
    for (int i = 0; i < spins; ++i) {
      if (done()) return absl::OkStatus();
      if (transport_ != nullptr) MoveOn(0);
      if (i % kSpinsPerCheck == kSpinsPerCheck - 1 && IsAborted()) break;
      if (i >= kEagerLooks) Pause();
    }
    return UntilSlow(done);
  }
  // Tells the host's other ranks that something they may wait for has been published. System calls
  // only for those asleep.
  void Ring();

  // This rank has lost a peer: `symptom` says how it noticed. The loss is a consequence, and the
  // daemons know of what: waits some seconds for them to abort the epoch with the cause; else the
  // symptom becomes the cause. Returns Aborted with it. `unreached`: as of AbortCause.
  absl::Status EndEpoch(const std::string& symptom, int unreached = -1);

  // OK, or Aborted with the cause.
  absl::Status Check() const;
  HostPage* page() const { return page_; }
  const int* event_fds() const { return event_fds_; }
  const WaitPolicy& policy() const { return policy_; }

 private:
  static constexpr int kSpinsPerCheck = 256;
  // Most of what a neighbour publishes comes within a microsecond: a pause would only delay it.
  static constexpr int kEagerLooks = 100;
  static constexpr int kPausesPerProgress = 20;

  bool IsAborted() const { return page_->aborted.load(std::memory_order_acquire) != 0; }
  bool HasSleepers() const;
  // A rank that is asleep is rung with the question.
  bool IsAsked() const {
    return on_question_ && page_->question.load(std::memory_order_relaxed) != answered_;
  }
  void AnswerIfAsked();
  bool YieldsToComputing() const { return beside_ && transport_ != nullptr; }
  // Progresses the transport and the background work; tells the process's other threads when
  // something moved. `inside`: 1 when this thread has entered the transport's sleepers.
  bool MoveOn(int inside);
  absl::Status UntilSlow(absl::FunctionRef<bool()> done);
  void AwaitAbort(std::chrono::milliseconds at_most);
  void SleepOnFutex(absl::FunctionRef<bool()> done);
  void SleepOnEvents(absl::FunctionRef<bool()> done);
  void Watch(uint32_t word);

  HostPage* const page_;
  const int local_rank_;
  const int* const event_fds_;
  const WaitPolicy policy_;
  Transport* transport_ = nullptr;
  BackgroundWork* background_ = nullptr;
  bool beside_ = false;
  std::atomic<uint64_t>* moves_ = nullptr;
  std::chrono::steady_clock::time_point wake_at_ = std::chrono::steady_clock::time_point::max();
  std::function<void()> on_question_;
  uint32_t answered_ = 0;  // the latest question
};

}  // namespace hvd::rt
