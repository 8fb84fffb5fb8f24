// SPDX-License-Identifier: Apache-2.0
// The verdict in words: one screen. Pure.
#pragma once

#include <string>

#include "cli/report/verdict.h"

namespace hvd::cli {

// Empty for a success and for an ending that wants no words (nobody reads our stdout).
std::string RenderVerdict(const JobFacts& facts, const Verdict& verdict);

// Tells where each rank is and in which state: shown at the first Ctrl-C.
std::string RenderStates(const JobFacts& facts);

// "rank 3 on host1", of the fact with this index.
std::string NameRank(const JobFacts& facts, int index);

// "rank 1 on host0 exited (code 0) without hvd's init"
std::string SayCleanExit(const JobFacts& facts, int index, const v1::RankExited& exit);

}  // namespace hvd::cli
