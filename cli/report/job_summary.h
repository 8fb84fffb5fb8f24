// SPDX-License-Identifier: Apache-2.0
// What the ranks counted, summed at the job's end. Pure.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "cli/report/verdict.h"

namespace hvd::cli {

// The rank that the others waited for most: it waited least itself.
struct SlowestRank {
  int rank = 0;
  double waited_s = 0;  // itself
  double others_s = 0;  // the others, on average
};
// Nothing with less than two ranks that have counted, or when all waited about as long.
std::optional<SlowestRank> FindSlowest(const JobFacts& facts);

// Lines for the terminal; empty when no rank has counted anything.
std::string RenderSummary(const JobFacts& facts);
// A member of job.json: {"collectives":…,"bytes":…,"wait_s":…,"slowest":…,"lag_s":[…]}.
Json SummaryJson(const JobFacts& facts);

}  // namespace hvd::cli
