// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/elastic/host.h"

#include <csignal>

#include "tests/simulator/elastic/world.h"

namespace hvd::elastic_simulator {
namespace {

constexpr double kBeatS = 0.25;        // between two beats, at most
constexpr double kGivenUpS = 0.5;      // behind the lease, by hvdrun
constexpr double kLastMomentS = 5e-3;  // from hvdd's death to that of its workers, at most

}  // namespace

Host::Host(World* world, int number, std::string name)
    : world_(world),
      number_(number),
      name_(std::move(name)),
      workers_(slots_.size()),
      main_part_([this] { return lives_ && ((!down_.empty() && reachable()) || !main_.empty()); },
                 [this] { StepMain(); }),
      links_part_([this] { return lives_ && LinksReady(); }, [this] { StepLinks(); }),
      up_part_([this] { return !partitioned_ && !lost && (!up_.empty() || eof_due_); },
               [this] {
                 if (up_.empty()) {
                   eof_due_ = false;
                   return world_->driver->LinkEnded(number_);
                 }
                 const v1::Event event = std::move(up_.front());
                 up_.pop_front();
                 world_->driver->Heard(number_, event);
               }) {
  Random& random = world->scheduler.random();
  for (Part* part : {&main_part_, &links_part_, &up_part_}) {
    if (random.OneIn(4)) part->laziness = random.Below(12);
    world->scheduler.Add(part);
  }
}

Host::~Host() {
  for (Part* part : {&main_part_, &links_part_, &up_part_}) world_->scheduler.Remove(part);
}

std::vector<Worker*> Host::Living() const {
  std::vector<Worker*> living;
  for (const auto& process : processes_) {
    if (process->lives()) living.push_back(process.get());
  }
  return living;
}

// ---- beats and the lease ----

// Beats flow, or they have ceased a moment ago: the lease runs from the last one's sending.
void Host::WatchBeats() {
  const bool flow = lives_ && !daemon_paused_ && !partitioned_;
  if (flow == beats_) return;
  beats_ = flow;
  const int outage = ++outage_;
  if (flow || !greeted_) return;
  Random& random = world_->scheduler.random();
  const double lease = world_->scenario.lease_s;
  world_->scheduler.After(lease - random.Seconds(0, kBeatS), [this, outage] {
    if (outage_ == outage && lives_) LeaseEnds();
  });
  world_->scheduler.After(lease + kGivenUpS - random.Seconds(0, kBeatS), [this, outage] {
    if (outage_ == outage && !lost) world_->driver->Silent(number_);
  });
}

// The shim has the same lease on a hvdd that stands still.
void Host::LeaseEnds() {
  world_->counts.Count("lease ended");
  lease_over_ = true;
  if (daemon_paused_) return KillAll();
  main_.push_back([this] { LoseDriver("the lease has ended"); });
}

void Host::KillAll() {
  for (Worker* const worker : Living()) worker->Die(SIGKILL);
}

void Host::LinkEnds() {
  link_ended_ = true;
  lost = true;
  up_.clear();
  // Where nothing comes through, only the lease tells.
  if (!partitioned_) main_.push_back([this] { LoseDriver("hvdrun has ended the link"); });
}

// ---- faults ----

// Its shim ends with it, and so do the workers, a moment later.
void Host::Crash() {
  if (!lives_) return;
  up_.resize(world_->scheduler.random().Below(up_.size() + 1));  // what had left it
  End();
  eof_due_ = true;
  for (Worker* const worker : Living()) {
    const double soon = world_->scheduler.random().Seconds(0, kLastMomentS);
    world_->scheduler.After(soon, [worker] { worker->Die(SIGKILL); });
  }
}

void Host::Silence() {
  if (!lives_) return;
  lives_ = false;
  for (Worker* const worker : Living()) worker->Die(SIGKILL);
  WatchBeats();
}

void Host::Partition(double seconds) {
  partitioned_ = true;
  WatchBeats();
  world_->scheduler.After(seconds, [this] {
    partitioned_ = false;
    WatchBeats();
    if (link_ended_ && lives_) main_.push_back([this] { LoseDriver("hvdrun has ended the link"); });
  });
}

void Host::PauseDaemon(double seconds) {
  daemon_paused_ = true;
  const double until = world_->scheduler.now() + seconds;
  for (Part* part : {&main_part_, &links_part_}) world_->scheduler.Pause(part, until);
  WatchBeats();
  world_->scheduler.At(until, [this] {
    daemon_paused_ = false;
    if (!lives_) return;
    WatchBeats();
    if (lease_over_) main_.push_back([this] { LoseDriver("the lease has ended"); });
  });
}

void Host::Drain(const std::string& cause) {
  main_.push_back([this, cause] {
    v1::Event event;
    event.mutable_drain_asked()->set_cause(cause);
    Emit(std::move(event));
  });
}

void Host::End() {
  lives_ = false;
  down_.clear();
  main_.clear();
  links_.clear();
}

// ---- workers ----

// The kernel closes its link, and tells its shim.
void Host::Ended(Worker* worker, int status) {
  worker->eof_sent = true;
  world_->counts.Count("process ended");
  if (!lives_) return;
  main_.push_back([this, worker, status] {
    if (slots_[worker->seat().slot] != worker) return;
    daemon::RankDeath death;
    death.slot = worker->seat().slot;
    death.status = status;
    OnEnded(std::move(death));
  });
}

void Host::LinkOfWorkerEnds(Worker* worker) {
  worker->link_broken = true;
  world_->checker.Broke(worker->begun());
  worker->eof_sent = true;
}

void Host::Emit(v1::Event event) {
  if (link_ended_ || !lives_) return;
  up_.push_back(std::move(event));
}

}  // namespace hvd::elastic_simulator
