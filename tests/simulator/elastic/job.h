// SPDX-License-Identifier: Apache-2.0
// One run of a simulated elastic job, from its first host to its end.
#pragma once

#include <string>

#include "tests/simulator/elastic/counts.h"
#include "tests/simulator/elastic/mutant.h"
#include "tests/simulator/elastic/scenario.h"
#include "tests/simulator/elastic/violation.h"

namespace hvd::elastic_simulator {

struct Outcome {
  Violation violation = Violation::kNone;
  std::string text;  // what was violated, with the seed
};

// `tells`: prints what happens.
Outcome RunJob(const Scenario& scenario, Mutant mutant, Counts* counts, bool tells = false);

}  // namespace hvd::elastic_simulator
