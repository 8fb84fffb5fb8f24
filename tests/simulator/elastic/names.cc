// SPDX-License-Identifier: Apache-2.0
#include <iterator>

#include "tests/simulator/elastic/mutant.h"
#include "tests/simulator/elastic/violation.h"

namespace hvd::elastic_simulator {
namespace {

constexpr const char* kMutants[] = {
    "none",           "no-agreement",     "local-epochs",        "early-quiet",  "own-sync",
    "header-first",   "lost-is-gone",     "most-commit",         "own-change",   "stale-change",
    "void-forgotten", "beyond-forgotten", "death-untold",        "member-again", "reads-anyway",
    "abort-untold",   "no-way-back",      "frames-of-any-epoch", "begun-counts", "sync-counts",
    "alls-well",      "cut-untold"};
static_assert(std::size(kMutants) == static_cast<size_t>(Mutant::kCount));

constexpr const char* kViolations[] = {
    "none",   "words",  "two-epochs", "late-write", "lost-commit", "content", "no-state",
    "member", "places", "updated",    "lost-steps", "limits",      "stuck",   "verdict"};
static_assert(std::size(kViolations) == static_cast<size_t>(Violation::kVerdict) + 1);

}  // namespace

const char* NameOf(Mutant mutant) { return kMutants[static_cast<size_t>(mutant)]; }
const char* NameOf(Violation violation) { return kViolations[static_cast<size_t>(violation)]; }

}  // namespace hvd::elastic_simulator
