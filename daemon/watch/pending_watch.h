// SPDX-License-Identifier: Apache-2.0
// Finds out who waits for whom on this host, while something is pending; an idle job is left alone.
// The ranks are asked through the host page what they have submitted. How they get on with it the
// page shows by itself, also of a rank that can say nothing. Belongs to the links thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/loop.h"
#include "daemon/members/host_epochs.h"
#include "daemon/watch/held_watch.h"
#include "daemon/watch/progress_watch.h"
#include "daemon/watch/stall_watch.h"
#include "hvd/v1/link_a.pb.h"

namespace hvd::daemon {

struct PendingWatchOptions {
  int slots = 0;
  StallPolicy stall;
  std::function<void(v1::Event)> on_event;
  // Returns the pid of the process that speaks for the slot, else of the one that was started
  // there; -1: none.
  std::function<int(int slot)> pid_of;
};

class PendingWatch {
 public:
  PendingWatch(Loop* loop, const HostEpochs* epochs, PendingWatchOptions options);

  // Looks for stalls from now on, as often as the policy wants.
  void Begin();
  // Asks once, and tells the answers as an event.
  void Tell();

 private:
  using OnAnswers = std::function<void(const PendingAnswers& answers)>;
  struct Question {
    uint64_t epoch = 0;
    uint32_t number = 0;
    TimePoint patience;  // until then late ranks are waited for
    OnAnswers then;
  };

  void LookForStalls();
  void TellIfDue(const PendingAnswers& answers);
  void TellDue(double waited_s);
  void LookForHeld();
  std::vector<HeldSlot> Held();
  void Ask(OnAnswers then);
  // After a moment, and again where ranks that could answer have not.
  void Await(Question question);
  PendingAnswers Answers(const Question& question);
  bool AnyMayAnswerYet(const PendingAnswers& answers) const;
  void TellPending(const PendingAnswers& answers);
  void AddTensors(const PendingAnswers& answers, v1::HostPending* host);
  void AddWork(v1::HostPending* host);
  void AddHeld(v1::HostPending* host);
  void AddMessages(v1::HostPending* host) const;
  // The newest epoch's, while it lives; else null.
  const EpochMemory* Watched() const;
  int RankOf(int local_rank) const;  // in the epoch that is watched
  std::vector<int> SlotsByLocalRank() const;
  std::vector<RankProgress> Progress();
  std::string DoingOf(int slot) const;

  Loop* const loop_;
  const HostEpochs* const epochs_;
  const PendingWatchOptions options_;
  StallWatch stalls_;
  ProgressWatch progress_;
  HeldWatch held_;
  std::vector<int> silent_;  // local ranks that had something pending and have not answered at all
};

}  // namespace hvd::daemon
