// --check-build: what this installation can do, in Horovod's layout.
#pragma once

#include <string>

#include "cli/library_report.h"

namespace hvd {

std::string FormatCheckBuild(const LibraryReport& library);

}  // namespace hvd
