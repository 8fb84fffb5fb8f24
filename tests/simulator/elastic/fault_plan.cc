// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/elastic/fault_plan.h"

#include <algorithm>
#include <csignal>
#include <limits>

#include "absl/strings/str_cat.h"
#include "tests/simulator/elastic/world.h"

namespace hvd::elastic_simulator {
namespace {

constexpr int kBugCode = 3;

}  // namespace

void FaultPlan::Arm(const std::vector<Fault>& faults) {
  for (const Fault& fault : faults) {
    world_->scheduler.At(fault.at, [this, fault] { Strike(fault); });
  }
}

bool FaultPlan::unreachable() const { return world_->scheduler.now() < unreachable_until_; }

const Fault* FaultPlan::Strikes(Place place) {
  for (Fault& fault : waiting_) {
    if (fault.place != place || fault.passes-- > 0) continue;
    struck_ = fault;
    // A fault that follows the first comes soon.
    const bool again = std::exchange(fault.again, false);
    if (again) fault.passes = world_->scheduler.random().Between(0, 2);
    if (!again) fault.place = Place::kCount;
    return &struck_;
  }
  return nullptr;
}

void FaultPlan::Strike(const Fault& fault) {
  world_->Tell(absl::StrCat("fault: ", NameOf(fault.kind), " for ", fault.length, " s"));
  switch (fault.kind) {
    case FaultKind::kDeath:
    case FaultKind::kPausedWorker:
    case FaultKind::kBrokenLink:
    case FaultKind::kExit:
    case FaultKind::kLeavingExit:
    case FaultKind::kFailure:
      if (fault.place != Place::kCount) return waiting_.push_back(fault);
      return StrikeWorkers(fault);
    case FaultKind::kDeaths:
      return StrikeWorkers(fault);
    case FaultKind::kFlap:
      world_->counts.Count(NameOf(fault.kind));
      return Flap(fault.length);
    case FaultKind::kCutLink:
    case FaultKind::kBadHost:
      world_->counts.Count(NameOf(fault.kind));
      return Part(fault);
    case FaultKind::kUnreachable:
      world_->counts.Count(NameOf(fault.kind));
      unreachable_until_ = world_->scheduler.now() + fault.length;
      return;
    default:
      return StrikeHost(fault);
  }
}

void FaultPlan::StrikeWorkers(const Fault& fault) {
  for (int i = 0; i < fault.count; ++i) {
    const std::vector<Worker*> workers = world_->Workers();
    if (workers.empty()) return;
    StrikeWorker(fault, workers[world_->scheduler.random().Below(workers.size())]);
  }
}

void FaultPlan::StrikeWorker(const Fault& fault, Worker* worker) {
  world_->counts.Count(NameOf(fault.kind));
  world_->counts.Count(absl::StrCat(NameOf(fault.kind), " at ", NameOf(worker->place())));
  const double now = world_->scheduler.now();
  switch (fault.kind) {
    case FaultKind::kPausedWorker:
      return world_->scheduler.Pause(worker, now + fault.length);
    case FaultKind::kBrokenLink:
      worker->host()->LinkOfWorkerEnds(worker);
      // It goes on a moment later, when others have heard of it.
      return world_->scheduler.Pause(worker, now + world_->scheduler.random().Seconds(0, 0.02));
    case FaultKind::kExit:
      return worker->Die(0);
    case FaultKind::kLeavingExit:
      return worker->LeaveAndDie(0);
    case FaultKind::kFailure:
      return worker->Die(kBugCode << 8);
    default:
      return worker->Die(SIGKILL);
  }
}

void FaultPlan::StrikeHost(const Fault& fault) {
  const std::vector<Host*> hosts = world_->Hosts();
  if (hosts.empty()) return;
  Host* const host = hosts[world_->scheduler.random().Below(hosts.size())];
  world_->counts.Count(NameOf(fault.kind));
  switch (fault.kind) {
    case FaultKind::kPausedDaemon:
      return host->PauseDaemon(fault.length);
    case FaultKind::kHostCrash:
      return host->Crash();
    case FaultKind::kHostSilent:
      return host->Silence();
    case FaultKind::kPartition:
      return host->Partition(fault.length);
    case FaultKind::kDrain:
      return host->Drain("SIGTERM");
    case FaultKind::kBadLaunches:
      host->cannot_start_until = world_->scheduler.now() + fault.length;
      return;
    default:
      return;
  }
}

// Whatever runs over a link that is cut notices it at once, as where a firewall refuses.
void FaultPlan::Part(const Fault& fault) {
  const std::vector<ListedHost>& hosts = world_->scenario.hosts;
  Random& random = world_->scheduler.random();
  const double until = fault.for_good ? std::numeric_limits<double>::infinity()
                                      : world_->scheduler.now() + fault.length;
  const size_t one = random.Below(hosts.size());
  if (fault.kind == FaultKind::kBadHost) {
    world_->trouble.bad_until[hosts[one].name] = until;
    return;
  }
  const size_t other = (one + 1 + random.Below(hosts.size() - 1)) % hosts.size();
  world_->trouble.cuts.push_back({hosts[one].name, hosts[other].name, until});
  for (Worker* const worker : world_->Workers()) worker->NoticeCut();
}

// Another list for a while: a host is away, or has another number of slots.
void FaultPlan::Flap(double length) {
  std::vector<ListedHost> hosts = world_->scenario.hosts;
  Random& random = world_->scheduler.random();
  const size_t changed = random.Below(hosts.size());
  if (random.OneIn(2)) {
    hosts[changed].slots = random.Between(1, 4);
  } else {
    hosts.erase(hosts.begin() + static_cast<std::ptrdiff_t>(changed));
  }
  world_->driver->Lists(hosts);
  world_->scheduler.After(length, [this] { world_->driver->Lists(world_->scenario.hosts); });
}

}  // namespace hvd::elastic_simulator
