// --check-build: what this installation can do, in Horovod's layout.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "cli/front/library_report.h"

namespace hvd {

// `python_package`: where the Python package is, empty when it is not there. It holds all of hvd
// for Python; what a program needs besides (NumPy, PyTorch) is the program's.
std::string FormatCheckBuild(const LibraryReport& library, absl::string_view python_package);

}  // namespace hvd
