// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/elastic/scenario.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace hvd::elastic_simulator {
namespace {

constexpr const char* kPlaces[] = {
    "started",  "joins",     "starts",   "addressed", "connects",     "ready",        "begins",
    "restores", "brings",    "computes", "reduces",   "begins-state", "writes-state", "ends-state",
    "agrees",   "committed", "leaves",   "left",      "done"};
static_assert(std::size(kPlaces) == static_cast<size_t>(Place::kCount));
constexpr const char* kFaults[] = {
    "death",     "deaths",       "paused-worker", "paused-daemon", "host-crash",  "host-silent",
    "partition", "drain",        "flap",          "bad-launches",  "unreachable", "broken-link",
    "exit",      "leaving-exit", "failure",       "cut-link",      "bad-host"};
static_assert(std::size(kFaults) == static_cast<size_t>(FaultKind::kCount));

// Deaths of workers are half of all.
FaultKind DrawKind(Random* random) {
  if (random->OneIn(2)) return random->OneIn(6) ? FaultKind::kDeaths : FaultKind::kDeath;
  if (random->OneIn(5)) return FaultKind::kBrokenLink;
  return static_cast<FaultKind>(
      random->Between(static_cast<int>(FaultKind::kDeaths), static_cast<int>(FaultKind::kFailure)));
}

// Seconds; some are longer than the lease, some than --elastic-timeout.
double DrawLength(const Scenario& scenario, Random* random) {
  const int which = random->Between(0, 3);
  if (which == 0) return random->Seconds(0, 0.2);
  if (which == 1) return random->Seconds(0.2, scenario.lease_s);
  if (which == 2) return random->Seconds(scenario.lease_s, scenario.lease_s + 2);
  return random->Seconds(1, scenario.options.elastic_timeout_s + 3);
}

Fault DrawFault(const Scenario& scenario, double around, Random* random) {
  Fault fault;
  fault.kind = DrawKind(random);
  fault.at = around;
  fault.length = DrawLength(scenario, random);
  fault.count = fault.kind == FaultKind::kDeaths ? random->Between(2, 5) : 1;
  fault.passes = random->Between(0, 6);
  fault.again = random->OneIn(8);
  const bool anywhere = random->OneIn(5);
  if (!anywhere) fault.place = static_cast<Place>(random->Below(static_cast<int>(Place::kCount)));
  return fault;
}

void DrawHosts(Scenario* scenario, Random* random) {
  const bool big = random->OneIn(24);
  const int hosts = big ? random->Between(4, 6) : random->Between(1, random->OneIn(4) ? 5 : 3);
  const int most = big ? 4 : random->Between(1, hosts > 3 ? 2 : 3);
  int slots = 0;
  for (int host = 0; host < hosts; ++host) {
    scenario->hosts.push_back({absl::StrCat("h", host), random->Between(1, most)});
    slots += scenario->hosts.back().slots;
  }
  cli::ElasticOptions& options = scenario->options;
  scenario->np = random->Between(1, slots);
  options.min_np = random->Between(1, scenario->np);
  if (random->OneIn(2)) options.min_np = 1;
  if (random->OneIn(4)) options.max_np = random->Between(scenario->np, slots);
}

void DrawLimits(Scenario* scenario, Random* random) {
  cli::ElasticOptions& options = scenario->options;
  options.elastic_timeout_s = random->Seconds(2, 8);
  options.cooldown_least_s = random->Seconds(0.5, 3);
  options.cooldown_most_s = options.cooldown_least_s * random->Between(1, 8);
  if (random->OneIn(8)) options.reset_limit = random->Between(0, 4);
  if (random->OneIn(6)) options.change = cli::MembershipChange::kNow;
  scenario->lease_s = random->Seconds(1, 3);
  scenario->grace_s = random->Seconds(0.2, 1.5);
}

void DrawProgram(Scenario* scenario, Random* random) {
  scenario->steps = random->Between(4, 24);
  scenario->commit_every = random->Between(1, 4);
  scenario->checks = random->OneIn(3);
  scenario->compute_s = random->OneIn(2) ? random->Seconds(0.001, 0.02) : random->Seconds(0, 0.2);
  scenario->start_s = random->OneIn(3) ? random->Seconds(0.5, 3) : random->Seconds(0.01, 0.2);
  if (random->OneIn(20)) {
    scenario->bug_at = random->Between(1, scenario->steps);
    scenario->bug_is_one = random->OneIn(2);
    scenario->bug_code = random->OneIn(3) ? 0 : 3;
  }
  scenario->has_place = random->OneIn(2);
  scenario->commits_anew = scenario->has_place && random->OneIn(3);
}

}  // namespace

const char* NameOf(Place place) { return kPlaces[static_cast<size_t>(place)]; }
const char* NameOf(FaultKind kind) { return kFaults[static_cast<size_t>(kind)]; }

// A rank may take longer to its start than the others wait for it.
bool Scenario::HoldsUp() const {
  constexpr double kMarginS = 0.05;  // until its process is there
  if (start_s + kMarginS > options.elastic_timeout_s) return true;
  return std::any_of(faults.begin(), faults.end(), [](const Fault& fault) {
    return fault.kind == FaultKind::kPausedWorker || fault.kind == FaultKind::kPausedDaemon ||
           fault.kind == FaultKind::kPartition || fault.kind == FaultKind::kHostSilent;
  });
}

Scenario Scenario::Draw(uint64_t seed) {
  Random random(seed ^ 0x5eed);
  Scenario scenario;
  scenario.seed = seed;
  DrawHosts(&scenario, &random);
  DrawLimits(&scenario, &random);
  DrawProgram(&scenario, &random);
  const double length = 0.2 + scenario.steps * scenario.compute_s + scenario.start_s;
  const int faults = random.OneIn(10) ? 0 : random.Between(1, random.OneIn(3) ? 6 : 3);
  double at = 1;
  for (int i = 0; i < faults; ++i) {
    // Some follow at once, while the one before is recovered from.
    at = random.OneIn(3) ? at + random.Seconds(0, 0.05) : 1 + random.Seconds(0, length);
    scenario.faults.push_back(DrawFault(scenario, at, &random));
  }
  return scenario;
}

Scenario Scenario::DrawCommits(uint64_t seed) {
  Random random(seed ^ 0xc0117);
  Scenario scenario;
  scenario.seed = seed;
  const int hosts = random.Between(2, 3);
  for (int host = 0; host < hosts; ++host) scenario.hosts.push_back({absl::StrCat("h", host), 1});
  scenario.np = hosts;
  DrawLimits(&scenario, &random);
  scenario.options.reset_limit = -1;
  scenario.steps = random.Between(6, 16);
  scenario.commit_every = 1;
  scenario.compute_s = random.Seconds(0, 2e-3);
  scenario.start_s = random.Seconds(0, 0.02);
  constexpr Place kPlacesOfCommits[] = {Place::kBeginsState, Place::kWritesState, Place::kEndsState,
                                        Place::kAgrees,      Place::kCommitted,   Place::kReduces};
  const int deaths = random.Between(2, 5);
  for (int i = 0; i < deaths; ++i) {
    Fault fault;
    fault.at = 1 + random.Seconds(0, 0.1);
    fault.place = kPlacesOfCommits[random.Below(std::size(kPlacesOfCommits))];
    fault.passes = random.Between(0, 8);
    scenario.faults.push_back(fault);
  }
  return scenario;
}

Scenario Scenario::DrawApart(uint64_t seed) {
  Random random(seed ^ 0xa9a47);
  Scenario scenario;
  scenario.seed = seed;
  DrawHosts(&scenario, &random);
  if (scenario.hosts.size() == 1) scenario.hosts.push_back({"h1", 1});
  DrawLimits(&scenario, &random);
  scenario.options.reset_limit = -1;
  DrawProgram(&scenario, &random);
  scenario.steps = random.Between(10, 40);
  scenario.bug_at = -1;
  const double length = 0.2 + scenario.steps * scenario.compute_s + scenario.start_s;
  const int faults = random.Between(1, 2);
  for (int i = 0; i < faults; ++i) {
    Fault fault;
    fault.kind = random.OneIn(2) ? FaultKind::kCutLink : FaultKind::kBadHost;
    fault.at = random.OneIn(3) ? 0 : 1 + random.Seconds(0, length);
    fault.length = DrawLength(scenario, &random);
    fault.for_good = random.OneIn(2);
    scenario.faults.push_back(fault);
  }
  if (random.OneIn(3)) {
    Fault death;
    death.at = 1 + random.Seconds(0, length);
    death.place = static_cast<Place>(random.Below(static_cast<int>(Place::kCount)));
    scenario.faults.push_back(death);
  }
  return scenario;
}

// All that befalls its processes does so before they would call hvd_init.
Scenario Scenario::DrawWithoutInit(uint64_t seed) {
  Scenario scenario = Draw(seed ^ 0x1417);
  scenario.seed = seed;
  scenario.inits = false;
  scenario.bug_at = -1;
  for (Fault& fault : scenario.faults) {
    if (fault.place != Place::kCount) fault.place = Place::kStarted;
  }
  return scenario;
}

std::string HostsText(const std::vector<ListedHost>& hosts) {
  std::string text;
  for (const ListedHost& host : hosts)
    absl::StrAppend(&text, host.name, " slots=", host.slots, "\n");
  return text;
}

}  // namespace hvd::elastic_simulator
