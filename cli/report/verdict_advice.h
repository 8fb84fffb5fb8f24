// SPDX-License-Identifier: Apache-2.0
// The next step of a person who reads a verdict.
#pragma once

#include <string>

#include "cli/report/verdict.h"

namespace hvd::cli {

// One sentence; empty: the verdict has said it already, or the person has asked for this end.
std::string NextStep(const JobFacts& facts, const Verdict& verdict);

}  // namespace hvd::cli
