// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/elastic/job.h"

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "cli/membership/faults/share_budget.h"
#include "tests/simulator/elastic/driver.h"
#include "tests/simulator/elastic/world.h"

namespace hvd::elastic_simulator {
namespace {

constexpr uint64_t kMostTurns = 400000;
constexpr double kSlackS = 10;

// For so long nothing may be got on with: each wait of the job has its limit.
double PatienceOf(const Scenario& scenario) {
  double patience = 2 * scenario.options.elastic_timeout_s + scenario.options.cooldown_most_s +
                    scenario.start_timeout_s + 2 * scenario.lease_s + 3 * scenario.grace_s +
                    cli::ShareBudget::kMostWaitS + kSlackS;
  for (const Fault& fault : scenario.faults) patience += fault.length;
  return patience;
}

void CheckVerdict(const cli::Verdict& verdict, World* world) {
  if (verdict.kind == cli::Verdict::kRank) {
    world->checker.JobEndsBadly(static_cast<uint64_t>(verdict.index) + 1);
  }
  if (verdict.exit_code == 0 && world->checker.JobEndsWell()) {
    world->counts.Count("ends well without hvd_init");
  }
}

void CheckEnding(const Driver& driver, World* world) {
  const cli::Ending ending = driver.facts().ending;
  // A program that cannot be started, or whose links break, looks like one that fails by itself.
  const std::vector<Fault>& faults = world->scenario.faults;
  const bool breaks = std::any_of(faults.begin(), faults.end(), [](const Fault& fault) {
    return fault.kind >= FaultKind::kBrokenLink && fault.kind <= FaultKind::kFailure;
  });
  const bool bug = world->scenario.bug_at >= 0 || world->bad_launches || breaks ||
                   !world->trouble.bad_until.empty();
  if (ending == cli::Ending::kProgramBug && !bug) {
    world->checker.Fail(Violation::kVerdict, "the program is blamed, and does nothing wrong");
  }
  if (ending == cli::Ending::kResetLimit && world->scenario.options.reset_limit < 0) {
    world->checker.Fail(Violation::kVerdict, "a reset limit is blamed, and there is none");
  }
  const bool names_link =
      driver.facts().ending_text.find("no data passes between") != std::string::npos;
  if (names_link && world->trouble.cuts.empty()) {
    world->checker.Fail(Violation::kVerdict, "a link is blamed, and none was cut");
  }
  if (ending == cli::Ending::kTooFew && names_link) world->counts.Count("ends for a cut link");
  switch (ending) {
    case cli::Ending::kNone:
      CheckVerdict(cli::Judge(driver.facts()), world);
      return world->counts.Count("ends by its ranks");
    case cli::Ending::kTooFew:
      return world->counts.Count("ends for too few");
    case cli::Ending::kResetLimit:
      return world->counts.Count("ends at the reset limit");
    case cli::Ending::kStateLost:
      world->checker.EndsWithoutState(driver.held_at_end());
      return world->counts.Count("ends without the state");
    case cli::Ending::kProgramBug:
      return world->counts.Count("ends for the program's bug");
    default:
      world->checker.Fail(Violation::kVerdict,
                          absl::StrCat("it ends for: ", driver.facts().ending_text));
  }
}

void CountAll(const World& world, Counts* counts) {
  counts->Add(world.counts);
  counts->Count("runs");
  counts->Count("turns", world.scheduler.turns());
  counts->Count("recoveries by going back", world.checker.rollbacks());
  counts->Count("planned changes", world.checker.planned());
  counts->Count("recoveries without survivors", world.checker.recoveries_without_survivors());
  counts->Count("states lost with all their hosts", world.checker.lost_states());
}

}  // namespace

World::World(const Scenario& drawn, Mutant planted, bool tells_all)
    : scenario(drawn),
      mutant(planted),
      tells(tells_all),
      scheduler(drawn.seed),
      checker(drawn),
      wire(&scheduler,
           [this](int from, int to) {
             const Host &one = *hosts[from], &other = *hosts[to];
             return one.reachable() && other.reachable() &&
                    !trouble.IsCut(one.name(), other.name(), scheduler.now());
           }),
      faults(this) {
  wire.TakeAnyEpoch(planted == Mutant::kFramesOfAnyEpoch);
  Tell(absl::StrCat("-np ", drawn.np));
  scheduler.Add(&wire);
  faults.Arm(scenario.faults);
}

void World::Tell(const std::string& what) const {
  if (tells) printf("%.6f %s\n", scheduler.now(), what.c_str());
}

std::vector<Worker*> World::Workers() const {
  std::vector<Worker*> workers;
  for (const auto& host : hosts) {
    for (Worker* const worker : host->Living()) workers.push_back(worker);
  }
  return workers;
}

std::vector<Host*> World::Hosts() const {
  std::vector<Host*> living;
  for (const auto& host : hosts) {
    if (host->lives()) living.push_back(host.get());
  }
  return living;
}

Outcome RunJob(const Scenario& scenario, Mutant mutant, Counts* counts, bool tells) {
  World world(scenario, mutant, tells);
  Driver driver(&world);
  driver.Begin();
  const double patience = PatienceOf(scenario);
  const Checker& checker = world.checker;
  while (!driver.finished() && checker.violation() == Violation::kNone) {
    const bool moves = world.scheduler.Turn();
    const bool late = world.scheduler.now() > world.progress_at + patience;
    if (moves && !late && world.scheduler.turns() < kMostTurns) continue;
    world.checker.Fail(
        Violation::kStuck,
        absl::StrCat("nobody gets on, epoch ", checker.newest_begun(), " of ",
                     driver.epochs_proposed(), " has begun; ", world.Workers().size(),
                     " workers at time ", world.scheduler.now(), " since ", world.progress_at));
  }
  if (checker.violation() == Violation::kNone) CheckEnding(driver, &world);
  CountAll(world, counts);
  return {checker.violation(), checker.text()};
}

}  // namespace hvd::elastic_simulator
