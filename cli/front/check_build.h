// SPDX-License-Identifier: Apache-2.0
// --check-build: what this installation can do, in Horovod's layout.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "cli/front/library_report.h"
#include "cli/front/python_report.h"

namespace hvd::cli {

// A framework is crossed when the person's Python has it, in a version that hvd works with, and hvd
// has what belongs to it; else its line says what is missing. `python_package`: the one beside
// hvdrun, empty when there is none.
std::string FormatCheckBuild(const LibraryReport& library, const PythonReport& python,
                             absl::string_view python_package);

}  // namespace hvd::cli
