// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/host/way_trial.h"

#include <catch2/catch.hpp>

namespace hvd::rt::test {
namespace {

// Calls until it is decided, where a staged call takes `staged` and one by peer reads `reads`.
int Decide(WayTrial* trial, int64_t staged, int64_t reads) {
  int calls = 0;
  for (; !trial->decided() && calls < 100; ++calls) {
    trial->Add(trial->next() == Way::kStaged ? staged : reads);
  }
  return calls;
}

TEST_CASE("way trial: takes turns, staged first") {
  WayTrial trial;
  for (const Way way : {Way::kStaged, Way::kPeerReads, Way::kStaged, Way::kPeerReads}) {
    CHECK(trial.next() == way);
    trial.Add(1000);
  }
  CHECK_FALSE(trial.decided());
}

TEST_CASE("way trial: the faster one wins, clearly") {
  WayTrial faster, equal, slower;
  CHECK(Decide(&faster, 1000, 900) == 6);
  CHECK(faster.next() == Way::kPeerReads);
  CHECK(Decide(&equal, 1000, 990) == 6);
  CHECK(equal.next() == Way::kStaged);
  CHECK(Decide(&slower, 1000, 1200) == 6);
  CHECK(slower.next() == Way::kStaged);
}

TEST_CASE("way trial: no second try of what is hopeless") {
  WayTrial trial;
  CHECK(Decide(&trial, 1000, 2000) == 2);
  CHECK(trial.next() == Way::kStaged);
}

TEST_CASE("way trial: a slow first call decides nothing") {
  WayTrial trial;
  trial.Add(50000);
  trial.Add(900);
  trial.Add(1000);
  trial.Add(90000);
  trial.Add(50000);
  CHECK_FALSE(trial.decided());
  trial.Add(90000);
  CHECK(trial.next() == Way::kPeerReads);
}

TEST_CASE("way trial: what comes after the decision changes nothing") {
  WayTrial trial;
  Decide(&trial, 1000, 900);
  trial.Add(1000000);
  CHECK(trial.next() == Way::kPeerReads);
}

}  // namespace
}  // namespace hvd::rt::test
