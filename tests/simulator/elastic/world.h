// SPDX-License-Identifier: Apache-2.0
// A whole elastic job: what its parts share, and who they are.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/simulator/elastic/checker.h"
#include "tests/simulator/elastic/counts.h"
#include "tests/simulator/elastic/fault_plan.h"
#include "tests/simulator/elastic/host.h"
#include "tests/simulator/elastic/mutant.h"
#include "tests/simulator/elastic/scenario.h"
#include "tests/simulator/elastic/scheduler.h"
#include "tests/simulator/elastic/trouble.h"
#include "tests/simulator/elastic/wire.h"

namespace hvd::elastic_simulator {

// Hears what hosts tell hvdrun.
class DriverSide {
 public:
  virtual ~DriverSide() = default;
  virtual void Heard(int host, const v1::Event& event) = 0;
  virtual void LinkEnded(int host) = 0;  // end of file
  virtual void Silent(int host) = 0;     // no beat for the lease and half a second
  virtual void Lists(const std::vector<ListedHost>& hosts) = 0;
  virtual const std::vector<int>& HostsOf(uint64_t epoch) const = 0;
};

struct World {
  World(const Scenario& drawn, Mutant planted, bool tells);

  // For people: what happens, when.
  void Tell(const std::string& what) const;
  void Progress() { progress_at = scheduler.now(); }
  std::vector<Worker*> Workers() const;  // that live
  std::vector<Host*> Hosts() const;      // that live

  const Scenario scenario;
  const Mutant mutant;
  const bool tells;
  Scheduler scheduler;
  Checker checker;
  Counts counts;
  Trouble trouble;
  Wire wire;
  FaultPlan faults;
  DriverSide* driver = nullptr;
  std::vector<std::unique_ptr<Host>> hosts;  // by number
  std::map<uint64_t, int> left_early;        // epochs that a rank has left while others go on
  double progress_at = 0;                    // when something was last got on with
  bool bad_launches = false;                 // some worker could not be started
};

}  // namespace hvd::elastic_simulator
