// SPDX-License-Identifier: Apache-2.0
// A host as hvdrun reaches it: hvdd with its two threads that matter here, its shim, its workers.
// hvdd's decisions are production code (HostJob, Parting, HostEpochs with its rendezvous and its
// files of state); what HostRanks, Daemon and LinkServer do around them with processes and sockets
// is done here with simulated ones, in the same order.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/job/host_job.h"
#include "daemon/job/parting.h"
#include "daemon/members/host_epochs.h"
#include "hvd/v1/link_a.pb.h"
#include "proto/page/host_page.h"
#include "tests/simulator/elastic/scheduler.h"
#include "tests/simulator/elastic/worker.h"

namespace hvd::elastic_simulator {

struct World;

class Host {
 public:
  Host(World* world, int number, std::string name);
  ~Host();

  int number() const { return number_; }
  const std::string& name() const { return name_; }
  bool lives() const { return lives_; }
  bool reachable() const { return lives_ && !partitioned_; }
  std::vector<Worker*> Living() const;
  Worker* FindLiving(uint64_t member) const;
  uint64_t NewestCommit() { return epochs_ != nullptr ? epochs_->Kept().newest : 0; }

  // hvdrun's.
  void Greet() { greeted_ = true; }
  void Receive(v1::Command command) { down_.push_back(std::move(command)); }
  void LinkEnds();
  bool lost = false;  // hvdrun has given it up

  // Faults.
  void Crash();
  void Silence();
  void Partition(double seconds);
  void PauseDaemon(double seconds);
  void Drain(const std::string& cause);
  double cannot_start_until = 0;

  // A worker's: its link has something, its process has ended, its part of a commit is written.
  void Ended(Worker* worker, int status);
  void LinkOfWorkerEnds(Worker* worker);
  void NoteWritten(uint64_t commit) { written_ = std::max(written_, commit); }

 private:
  // A thread of hvdd, or the link to hvdrun.
  class Part : public Actor {
   public:
    Part(std::function<bool()> ready, std::function<void()> step)
        : ready_(std::move(ready)), step_(std::move(step)) {}
    bool Ready() const override { return ready_(); }
    void Step() override { step_(); }

   private:
    const std::function<bool()> ready_;
    const std::function<void()> step_;
  };
  // hvdd's main thread (host_main.cc).
  void StepMain();
  void Handle(const v1::Command& command);
  void Prepare(const v1::PrepareHost& prepare);
  void Propose(const v1::EpochPropose& propose);
  void Spawn(const v1::SpawnSlots& spawn);
  void StartWorker(const v1::Seat& seat);
  bool CheckSeat(const v1::Seat& seat);
  void NeverStart(int slot);
  void FailLaunch();
  void Retire(const v1::RetireSlot& retire);
  void Term(int slot, uint64_t member);
  void Kill(int slot, uint64_t member);
  void BeginStop(bool kill, const std::string& cause);
  void OnEnded(daemon::RankDeath death);
  void TellEnd(const daemon::RankDeath& death);
  void LoseDriver(const std::string& why);
  void MaybeFinish();

  // hvdd's links thread (host_links.cc).
  daemon::HostEpochsOptions EpochOptions();
  bool LinksReady() const;
  void StepLinks();
  void Hear(Worker* worker);
  void HearOut(Worker* worker);
  void OnLost(Worker* worker);
  void Expect(const v1::SpawnSlots& spawn);
  daemon::LinkFacts EndOf(const daemon::RankDeath& death);
  void SendToWorker(int slot, daemon::SlotMessage message);
  void Emit(v1::Event event);
  void SayQuietEarly(uint64_t epoch);
  uint64_t LocalEpoch(uint64_t epoch);

  void WatchBeats();
  void LeaseEnds();
  void KillAll();
  void End();

  World* const world_;
  const int number_;
  const std::string name_;
  bool greeted_ = false;
  bool lives_ = true;
  bool partitioned_ = false;
  bool daemon_paused_ = false;
  bool link_ended_ = false;  // hvdrun has ended it
  bool eof_due_ = false;     // hvdrun is to see the end, behind what has been sent
  bool lease_over_ = false;
  bool stopping_ = false;
  bool launched_told_ = false;
  bool beats_ = true;
  int outage_ = 0;

  std::optional<daemon::HostJob> job_;  // hvdd's; empty: it has not been prepared
  daemon::Parting parting_;
  std::array<Worker*, kMaxLocalRanks> slots_{};  // the newest worker of each; null: none has come
  daemon::WorkerSlots workers_;
  std::unique_ptr<daemon::HostEpochs> epochs_;
  std::vector<std::unique_ptr<Worker>> processes_;  // all that were ever started
  std::deque<v1::Command> down_;
  std::deque<v1::Event> up_;
  std::deque<std::function<void()>> main_;
  std::deque<std::function<void()>> links_;
  uint64_t written_ = 0;     // the newest commit that a rank here has written its part of
  uint64_t counted_ = 0;     // epochs (a mutant counts them)
  uint64_t resumes_at_ = 0;  // of the newest proposal
  Part main_part_, links_part_, up_part_;
};

}  // namespace hvd::elastic_simulator
