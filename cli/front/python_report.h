// SPDX-License-Identifier: Apache-2.0
// Which frameworks the Python has that a program would get, as --check-build learns it.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace hvd::cli {

// A framework, or Python itself.
struct PythonFinding {
  std::string version;  // empty: not known, or none
  std::string problem;  // why hvd cannot be used with it; empty: it can
};

struct PythonReport {
  PythonFinding python;
  std::string path;                                 // of that Python
  std::string package;                              // the hvd that it imports; empty: none
  std::map<std::string, PythonFinding> frameworks;  // by their titles
};

struct PythonQuestion {
  std::string python;     // its path
  std::string package;    // hvd's Python package, whose _frameworks.py answers
  std::string libraries;  // the folder of libhvd
  std::chrono::milliseconds patience = std::chrono::seconds(5);
};

// The Python of whoever types "hvdrun": HVD_PYTHON, by which hvd's wheel names its own, else the
// python3 of PATH. Empty when there is none. `environment` has NAME=VALUE.
std::string FindPython(const std::vector<std::string>& environment);

// Asks that Python, in a child process. Call it before any thread exists.
PythonReport ProbePython(const PythonQuestion& question);

// Reads what _frameworks.py writes; lines that are not its own are left out. `whole` says whether
// its last line is there.
PythonReport ParsePythonAnswer(const std::string& text, bool* whole);

}  // namespace hvd::cli
