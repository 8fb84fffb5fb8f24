// SPDX-License-Identifier: Apache-2.0
// A run's faults, and when each of them strikes.
#pragma once

#include <vector>

#include "tests/simulator/elastic/scenario.h"

namespace hvd::elastic_simulator {

struct World;
class Worker;

class FaultPlan {
 public:
  explicit FaultPlan(World* world) : world_(world) {}

  void Arm(const std::vector<Fault>& faults);
  // Returns the fault that strikes a worker that comes to this place; null: none does. Valid until
  // the next call.
  const Fault* Strikes(Place place);
  // Hosts that are reached do not answer.
  bool unreachable() const;

  // It is the worker's own fault, or what happens to it.
  void StrikeWorker(const Fault& fault, Worker* worker);

 private:
  void Strike(const Fault& fault);
  void StrikeHost(const Fault& fault);
  void StrikeWorkers(const Fault& fault);
  void Flap(double length);
  void Part(const Fault& fault);

  World* const world_;
  std::vector<Fault> waiting_;  // of workers at places
  Fault struck_;
  double unreachable_until_ = 0;
};

}  // namespace hvd::elastic_simulator
