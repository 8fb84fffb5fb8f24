// SPDX-License-Identifier: Apache-2.0
// What libhvd can do on this machine, as --check-build learns it.
#pragma once

#include <map>
#include <string>

namespace hvd::cli {

struct LibraryReport {
  std::string path;                         // where it was looked for
  std::string problem;                      // empty: it loaded and answered
  std::map<std::string, std::string> info;  // hvd_build_info()'s lines
};

// Loads the library in a forked child, so that a broken one cannot take hvdrun along, and waits at
// most ten seconds for its answer. Call it before any thread exists.
LibraryReport ProbeLibrary(const std::string& path);

// Splits "name=value\n" lines; lines of another form are left out.
std::map<std::string, std::string> ParseBuildInfo(const std::string& text);

}  // namespace hvd::cli
