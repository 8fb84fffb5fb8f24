// SPDX-License-Identifier: Apache-2.0
// job.json: the verdict's facts for programs. Pure but for the writing.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "cli/report/verdict.h"

namespace hvd::cli {

std::string RenderJobReport(const JobFacts& facts, const Verdict& verdict);

// Writes DIRECTORY/job.json by way of a temporary file, making the directory if it is missing.
absl::Status WriteJobReport(const std::string& directory, const std::string& report);
// The same on a thread, for which it waits at most `seconds`: a hung file system must not hold up
// the verdict. The thread may still hang when this returns.
absl::Status WriteJobReportWithin(double seconds, const std::string& directory, std::string report);

}  // namespace hvd::cli
