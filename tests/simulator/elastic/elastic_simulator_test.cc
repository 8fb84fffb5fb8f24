// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "tests/simulator/elastic/job.h"

namespace hvd::elastic_simulator {
namespace {

// A sanitizer makes them some ten times slower.
constexpr uint64_t kSeeds = 10000 / HVD_TEST_SLOWNESS;
constexpr uint64_t kCommitSeeds = 2000 / HVD_TEST_SLOWNESS;
constexpr uint64_t kApartSeeds = 2000 / HVD_TEST_SLOWNESS;
constexpr uint64_t kUnbegunSeeds = 2000;
constexpr uint64_t kMutantSeeds = 10000;  // at most; most are found within some ten

using Kinds = std::set<Violation>;

std::string RunSeeds(uint64_t seeds, Scenario (*draw)(uint64_t), Counts* counts) {
  std::string violations;
  for (uint64_t seed = 1; seed <= seeds && violations.size() < 4000; ++seed) {
    const Outcome outcome = RunJob(draw(seed), Mutant::kNone, counts);
    if (outcome.violation != Violation::kNone) violations += outcome.text + "\n";
  }
  return violations;
}

TEST_CASE("elastic jobs keep what they promise, whatever befalls them") {
  Counts counts;
  CHECK(RunSeeds(kSeeds, Scenario::Draw, &counts) == "");
  for (int kind = 0; kind <= static_cast<int>(FaultKind::kBrokenLink); ++kind) {
    const std::string name = NameOf(static_cast<FaultKind>(kind));
    INFO(name);
    CHECK(counts.Of(name) > 0);
  }
  for (int place = 0; place < static_cast<int>(Place::kCount); ++place) {
    const std::string name = std::string("death at ") + NameOf(static_cast<Place>(place));
    INFO(name);
    CHECK(counts.Of(name) > 0);
  }
  for (const char* what :
       {"planned changes", "recoveries by going back", "recoveries without survivors", "restored",
        "brought", "removed", "lease ended", "lease end heard", "host silent", "host not reached",
        "launch failed", "retirement asked", "broken link heard", "clean end",
        "ends at the reset limit", "ends by its ranks", "ends for the program's bug",
        "ends for too few", "ends without the state"}) {
    INFO(what);
    CHECK(counts.Of(what) > 0);
  }
}

TEST_CASE("deaths around commits lose none that has returned") {
  Counts counts;
  CHECK(RunSeeds(kCommitSeeds, Scenario::DrawCommits, &counts) == "");
  CHECK(counts.Of("recoveries by going back") > kCommitSeeds);
}

TEST_CASE("hosts that are cut off, or where the program cannot begin, are left out") {
  Counts counts;
  CHECK(RunSeeds(kApartSeeds, Scenario::DrawApart, &counts) == "");
  for (const char* what : {"cut-link", "bad-host", "left out for a cut link", "ends for a cut link",
                           "left out for failed starts", "ends by its ranks", "ends for too few"}) {
    INFO(what);
    CHECK(counts.Of(what) > 0);
  }
}

TEST_CASE("a program that never calls hvd_init ends well when -np of its processes have") {
  Counts counts;
  CHECK(RunSeeds(kUnbegunSeeds, Scenario::DrawWithoutInit, &counts) == "");
  CHECK(counts.Of("epoch proposed") == 0);
  for (const char* what : {"ends well without hvd_init", "death at started", "failure at started",
                           "host lost", "ends for too few"}) {
    INFO(what);
    CHECK(counts.Of(what) > 0);
  }
}

// Returns the violations by which the mutant comes to light.
Kinds SignsOf(Mutant mutant) {
  switch (mutant) {
    case Mutant::kNoAgreement:
      return {Violation::kLostCommit, Violation::kContent};
    case Mutant::kLocalEpochs:
      return {Violation::kWords, Violation::kStuck};
    case Mutant::kEarlyQuiet:
    case Mutant::kLostIsGone:
      return {Violation::kLateWrite};
    case Mutant::kMostCommit:
    case Mutant::kBegunCounts:
      return {Violation::kNoState, Violation::kContent, Violation::kLostCommit};
    case Mutant::kOwnChange:
    case Mutant::kStaleChange:
      return {Violation::kUpdated};
    case Mutant::kVoidForgotten:
      return {Violation::kLostCommit, Violation::kContent, Violation::kNoState};
    case Mutant::kCutUntold:
      return {Violation::kLimits, Violation::kStuck};
    case Mutant::kDeathUntold:
    case Mutant::kAbortUntold:
      return {Violation::kStuck};
    case Mutant::kSyncCounts:
      return {Violation::kLimits};
    case Mutant::kAllsWell:
      return {Violation::kVerdict};
    case Mutant::kMemberAgain:
      return {Violation::kMember};
    case Mutant::kReadsAnyway:
      return {Violation::kNoState};
    case Mutant::kOwnSync:
    case Mutant::kHeaderFirst:
    case Mutant::kBeyondForgotten:
    case Mutant::kNoWayBack:
    case Mutant::kFramesOfAnyEpoch:
      return {Violation::kContent};
    case Mutant::kNone:
    case Mutant::kCount:
      break;
  }
  return {};
}

TEST_CASE("a protocol with a fault is found out") {
  for (int number = 1; number < static_cast<int>(Mutant::kCount); ++number) {
    const auto mutant = static_cast<Mutant>(number);
    Outcome found;
    Counts counts;
    for (uint64_t seed = 1; seed <= kMutantSeeds && found.violation == Violation::kNone; ++seed) {
      found = RunJob(Scenario::Draw(seed), mutant, &counts);
      if (found.violation == Violation::kNone) {
        found = RunJob(Scenario::DrawCommits(seed), mutant, &counts);
      }
      if (found.violation == Violation::kNone) {
        found = RunJob(Scenario::DrawApart(seed), mutant, &counts);
      }
    }
    INFO(NameOf(mutant) << ": " << found.text);
    CHECK(SignsOf(mutant).count(found.violation) == 1);
  }
}

}  // namespace
}  // namespace hvd::elastic_simulator
